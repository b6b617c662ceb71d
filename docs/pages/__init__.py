"""Writes the pages, tables and figures of the documentation that are computed from data kept beside them."""

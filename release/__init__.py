"""Tools for releases."""

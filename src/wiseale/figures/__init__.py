"""Figures: data in, a matplotlib Figure out."""

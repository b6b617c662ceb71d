"""Packed datasets: one memory-mapped file of rows with a manifest."""

"""Packed datasets: memory-mapped files of rows with a manifest."""

"""Rendered teapots: the mesh, the renderer, and the dataset registered as ``teapot``."""

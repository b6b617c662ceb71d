"""Encoder and decoder pairs: one file each, all sized to the shape of an observation."""

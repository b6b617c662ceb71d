"""The latent-space explorer: a page on which codes are moved, decoded and compared, served locally or as one file."""

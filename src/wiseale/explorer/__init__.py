"""The latent-space explorer: a page to move through a trained model's codes."""

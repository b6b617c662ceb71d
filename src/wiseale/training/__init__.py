"""One readable loop, its randomness, its checkpoints and the directory a run lives in."""

"""Loggers: the metrics of a run for other programs, one file each; ``metrics.jsonl`` stays the record of the run."""

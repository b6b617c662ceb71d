"""Run directories: starting and resuming a run, checkpoints, metrics, loggers."""

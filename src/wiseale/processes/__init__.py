"""Training on several processes and machines: ranks, collectives, gradient averaging, launching."""

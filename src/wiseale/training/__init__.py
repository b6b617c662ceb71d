"""Training: one readable loop, and the plan, learner, batches, optimiser and schedules that it uses."""

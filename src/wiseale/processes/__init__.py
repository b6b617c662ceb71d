"""Training on several processes and machines: which rank this is, what ranks exchange, how they start and end."""

"""The errors of the bounds on the aggregate KL: the tables and figures of docs/bounds.md."""

"""The analysis of the bounds on the aggregate KL: error, limits and optimum, and the paper's two-Gaussian toy."""

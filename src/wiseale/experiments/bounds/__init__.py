"""The analysis of the bound: its error, its limits and its optimum, and the paper's two-Gaussian toy."""

"""Comparisons of many runs: the paper's experiments, the bound analysis, and their figures."""

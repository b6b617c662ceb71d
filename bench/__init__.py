"""Benchmarks against peers and limits: ``python -m bench training [--quick]``; ratios are taken inside one run."""

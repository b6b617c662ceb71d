"""The paper's experiments: how much of them is run, and the names of controls, which differ from them on purpose."""

from __future__ import annotations

from typing import Literal, get_args

Scale = Literal["smoke", "small", "paper"]
"""smoke: minutes, to see that everything runs; small: hours at most on a CPU; paper: the published sizes."""

SCALES: tuple[Scale, ...] = get_args(Scale)

TIME_PER_STEP = "time-per-step"
"""Short runs, made to be timed: what a step costs does not depend on how many follow."""

TORCH_WEIGHTS = "init-torch"
"""Runs from PyTorch's initial weights."""

LEARNED_NOISE = "learned-noise"
"""Runs that learn the standard deviation of the Gaussian likelihood."""

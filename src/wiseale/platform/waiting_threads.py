"""Let OpenMP threads that wait for each other sleep instead of spin.

torch's threads meet many times in every training step. By default OpenMP lets those that arrive first spin, which on a
machine with other programs takes the processor away from the thread they wait for: with two threads a step took 12 to
37 times as long as with one, and 0.3 to 1.4 times as long once waiting threads sleep (docs/decisions/0024).
"""

from __future__ import annotations

import os

_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def sleep_while_waiting() -> None:
    """Ask the OpenMP library, which reads its environment when torch is imported, to let waiting threads sleep.

    Results do not change. Whoever has set one of the variables that decide this keeps their choice.
    """
    if not any(name in os.environ for name in _CHOICES):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

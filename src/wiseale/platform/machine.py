"""This machine and this installation: cores, memory, page faults, network interface, OpenMP, the source's commit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from wiseale.errors import NotEnoughMemoryError

_OPENMP_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_PACKAGE = Path(__file__).resolve().parents[1]


def cores() -> int:
    """Cores this process may use; all cores where the system (macOS, Windows) does not restrict processes to some."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def peak_memory_bytes() -> int | None:
    """The most physical memory this process has held so far; None where the system does not tell."""
    if sys.platform == "win32":
        return _windows_peak_memory_bytes()
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, Linux KiB


def available_memory_bytes() -> int | None:
    """Memory that can be taken without swapping, within the process's limit; None where the system does not tell."""
    limits = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        pass
    try:
        import resource
    except ImportError:
        pass
    else:
        soft = resource.getrlimit(resource.RLIMIT_AS)[0]
        limits += [soft] if soft != resource.RLIM_INFINITY else []
    return min(limits, default=None)


def require_memory(needed: int, what: str, advice: str) -> None:
    """An error where something needs more memory than there is: the system would kill the process without a word."""
    available = available_memory_bytes()
    if available is not None and needed > available:
        raise NotEnoughMemoryError(
            f"{what} takes {needed / 1e9:,.1f} GB and {available / 1e9:,.1f} GB of memory are available: {advice}"
        )


def loopback_interface() -> str | None:
    """Name of the network interface that stays on this machine; None on Windows, which has no such name."""
    return {"win32": None, "darwin": "lo0"}.get(sys.platform, "lo")


def sleep_while_waiting() -> None:
    """Let OpenMP threads that wait for each other sleep instead of spin; to be called before torch is imported.

    torch's threads meet many times in a training step. Beside other programs, spinning takes the processor away from
    the thread they wait for (docs/decisions/0024). Results do not change. Whoever has set one of the variables that
    decide this keeps their choice.
    """
    if not any(name in os.environ for name in _OPENMP_CHOICES):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"


def source_commit(package: Path = _PACKAGE) -> str | None:
    """The Git commit of a source checkout, with "-dirty" after uncommitted changes.

    None where the package is installed elsewhere: a Git repository around a virtual environment is not its source.
    """
    root = package.parent.parent
    if package.parent.name != "src" or not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


if sys.platform == "win32":

    def _windows_peak_memory_bytes() -> int:
        import ctypes
        from ctypes import c_size_t, c_uint32

        class ProcessMemoryCounters(ctypes.Structure):
            _fields_ = (
                ("size", c_uint32),
                ("page_faults", c_uint32),
                ("peak_working_set", c_size_t),
                ("rest", c_size_t * 7),
            )

        counters = ProcessMemoryCounters(size=ctypes.sizeof(ProcessMemoryCounters))
        this_process = ctypes.c_void_p(-1)
        ctypes.windll.kernel32.K32GetProcessMemoryInfo(this_process, ctypes.byref(counters), counters.size)
        return int(counters.peak_working_set)

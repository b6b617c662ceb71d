"""This machine: cores, memory, network interface, OpenMP, the source's commit; signals that ask a process to end.

Windows cannot deliver SIGINT or SIGTERM to another process: Popen.terminate kills it. It can send Ctrl-Break to a
process that leads a group of its own; Python shows it to that process as SIGBREAK.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from wiseale.errors import NotEnoughMemoryError

_OPENMP_CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_PACKAGE = Path(__file__).resolve().parents[1]


END_WITH_PARENT = "WISEALE_END_WITH_PARENT"
"""Environment variable of a command that is to save and end when the process that started it ends."""

STOP_SIGNALS: tuple[int, ...] = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)
"""On receiving one of these a run writes a checkpoint and ends."""

SIGPIPE = 13
"""The signal of an output without a reader; Python turns it into BrokenPipeError, and Windows has none."""

NEW_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""``creationflags`` of a process that :func:`request_stop` will be used on; 0 except on Windows."""


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
    with suppress(OSError, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with suppress(ImportError):
        import resource

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


def request_stop(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
    """Send the signal, on Windows Ctrl-Break instead, to a process started with ``creationflags=NEW_GROUP``."""
    process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", number))


def end_with_parent() -> None:
    """Save and end when the parent ends, even by a kill: its end of our standard input, a pipe, closes then."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def end_imports_on_interrupt() -> None:
    """Let Ctrl-C end the process at once while torch is being imported; nothing has been written by then.

    A KeyboardInterrupt in the midst of torch's compiled code is dropped, and the half-imported numpy fails later with
    an error that does not name its cause, or aborts the interpreter.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        spec = getattr(sys.modules.get("torch"), "__spec__", None)
        if getattr(spec, "_initializing", False):
            with suppress(OSError):
                os.write(2, b"wiseale: interrupted\n")
            os._exit(130)
        signal.default_int_handler(number, frame)

    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


@contextmanager
def handling(
    handler: Callable[[int, FrameType | None], object], numbers: Sequence[int] = STOP_SIGNALS
) -> Iterator[None]:
    """Let these signals call the handler, except those that are ignored: nohup and the like mean it."""
    before = {n: signal.signal(n, handler) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


if sys.platform == "win32":

    def _windows_peak_memory_bytes() -> int:
        import ctypes
        from ctypes import c_size_t, c_uint32

        class ProcessMemoryCounters(ctypes.Structure):
            _fields_ = (("size", c_uint32), ("faults", c_uint32), ("peak", c_size_t), ("rest", c_size_t * 7))

        counters = ProcessMemoryCounters(size=ctypes.sizeof(ProcessMemoryCounters))
        this_process = ctypes.c_void_p(-1)
        ctypes.windll.kernel32.K32GetProcessMemoryInfo(this_process, ctypes.byref(counters), counters.size)
        return int(counters.peak)

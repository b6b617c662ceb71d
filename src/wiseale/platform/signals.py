"""Signals that ask a process to save and end, and how to send one to a process that we started.

Windows cannot deliver SIGINT or SIGTERM to another process: Popen.terminate kills it. It can send Ctrl-Break to a
process that leads a group of its own; Python shows it to that process as SIGBREAK.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from types import FrameType

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

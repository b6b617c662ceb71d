"""Faults of the machine, not of wiseale: a full disk, a missing permission, too little memory; each in one line."""

from __future__ import annotations

import errno

_ADVICE = {
    errno.ENOSPC: "free some space, then run the command again (`wiseale resume` for a run)",
    errno.EDQUOT: "free some of your quota, then run the command again (`wiseale resume` for a run)",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f), then run the command again",
    errno.EROFS: "choose a place that can be written",
    errno.EACCES: "change its permissions, or choose another place",
    errno.EPERM: "change its permissions, or choose another place",
    errno.EIO: "the disk may be failing: take another one, then run the command again",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}
_ALLOCATOR = ("can't allocate memory", "not enough memory", "out of memory")  # in torch's RuntimeErrors


def fault_in_words(error: Exception) -> str | None:
    """What went wrong and what to do, in one line; None where it is a fault of ours, to be shown with its traceback."""
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(part in str(error).lower() for part in _ALLOCATOR)
    ):
        return "not enough memory: use a smaller network, latent dimension or batch, fewer rows, or a larger machine"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        advice = f"; {_ADVICE[error.errno]}" if error.errno in _ADVICE else ""
        return f"{where}{error.strerror or error}{advice}"
    if type(error).__name__ == "SafetensorError":
        return f"a safetensors file cannot be read or written: {error}"
    return None


def one_line(text: str) -> str:
    r"""Text on one line that cannot command a terminal: "?" for every control character.

    >>> one_line("a \x1b[31m\nb")
    'a ?[31m b'
    """
    return " ".join(text.split()).translate(_CONTROLS)


_CONTROLS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), "?")

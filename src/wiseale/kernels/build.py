"""Compile the C sources on the machine that uses them, keep the library in the cache folder, load and check it.

Loading a library runs its code, and a truncated one ends the process with SIGBUS. So only a file that no other user
could have written, and that is the one that was built, is loaded. Checks of owners and permissions are skipped on
systems that have none (Windows).
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from wiseale.kernels import layout
from wiseale.platform.atomic_files import sha256
from wiseale.platform.folders import cache_root

SWITCH = "WISEALE_NATIVE"
"""Environment variable: 0 leaves everything to torch."""

SOURCES = [Path(__file__).with_name(name) for name in ("vectors.h", "conv.c", "pairs.c", "bytes.c")]
BASE_FLAGS = ("-O3", "-std=c11", "-ffp-contract=fast", "-shared", "-fPIC", "-Wno-psabi")
_TIMEOUT = 120  # seconds for the compiler


@dataclass(frozen=True)
class Kernels:
    """The loaded library, or None and the reason.

    Attributes:
        state: one line for people: how the library was built, or why it is not used.
        parallel: whether the kernels share torch's threads; otherwise they use one.
    """

    library: ctypes.CDLL | None
    state: str
    parallel: bool = False

    @property
    def threads(self) -> int:
        """Threads the kernels may use now."""
        return torch.get_num_threads() if self.parallel else 1


@cache
def kernels() -> Kernels:
    """The kernels, compiled by the first process on this machine that asks; never raises."""
    if os.environ.get(SWITCH) == "0":
        return Kernels(None, f"not used: ${SWITCH} is 0")
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)
    if compiler is None:
        return Kernels(None, "not used: no C compiler found")
    try:
        library, note = _from_cache(compiler, cache_root() / "native")
        check(library)
    except (OSError, RuntimeError, AttributeError, ValueError, subprocess.SubprocessError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        return Kernels(None, f"not used: {reason}")
    parallel = bool(library.wiseale_is_parallel())
    threads = "torch's threads" if parallel else "one thread"
    return Kernels(library, f"compiled by {Path(compiler).name} for {threads}{note}", parallel)


def _from_cache(compiler: str, folder: Path) -> tuple[ctypes.CDLL, str]:
    """The library for these sources, this compiler and this processor, and a note for the state.

    It is built where the cache lacks an intact one. A folder that others could write to is not used at all: the library
    is then built in a temporary folder of this process.
    """
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=_TIMEOUT, check=True).stdout
    contents = [source.read_bytes() for source in SOURCES]
    key = (*contents, version, repr((BASE_FLAGS, *_flag_choices())).encode(), _processor().encode())
    name = f"kernels-{hashlib.sha256(b'|'.join(key)).hexdigest()[:20]}.so"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    doubt = doubt_about_folder(folder)
    if doubt is not None:
        with tempfile.TemporaryDirectory(prefix="wiseale-", ignore_cleanup_errors=True) as private:
            return ctypes.CDLL(str(_compile(compiler, Path(private) / name))), f", for this process only: {doubt}"
    path = folder / name
    if is_intact(path):
        with suppress(OSError):  # built for another libc, say: build it again
            return ctypes.CDLL(str(path)), ""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        install(_compile(compiler, Path(temporary) / name), path)
    return ctypes.CDLL(str(path)), ""


def _compile(compiler: str, path: Path) -> Path:
    """All sources into one library, with the best flags that this compiler accepts."""
    sources = [str(source) for source in SOURCES if source.suffix == ".c"]
    for flags in _flag_choices():
        command = [compiler, *BASE_FLAGS, *sources, *flags, "-o", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
        if done.returncode == 0:
            return path
    raise OSError(f"{Path(compiler).name} cannot compile the kernels: {done.stderr.strip() or done.returncode}")


def _flag_choices() -> Iterator[tuple[str, ...]]:
    """Flags for this processor and torch's threads first, then for less."""
    for threads in (("-fopenmp", "-Wl,--as-needed", *_torch_openmp()), ()):
        yield from ((*processor, *threads) for processor in (("-march=native",), ("-mcpu=native",), ()))


def _torch_openmp() -> list[str]:
    """The OpenMP library that came with torch: a second one would start threads that compete with torch's."""
    home = Path(torch.__file__).parent
    libraries = [*home.glob("lib/libgomp*.so*"), *home.with_name("torch.libs").glob("libgomp*.so*")]
    return [str(path) for path in libraries[:1]]


def _processor() -> str:
    """What ``-march=native`` depends on: a cache folder may be shared between machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    return f"{platform.system()} {platform.machine()} {features}"


def check(library: ctypes.CDLL) -> None:
    """Refuse a library whose records differ from ours or whose results are wrong: RuntimeError says how."""
    layout.declare_functions(library)
    if difference := layout.difference(library):
        raise RuntimeError(difference)
    rows, positions, floats = (ctypes.c_uint8 * 4)(0, 255, 51, 102), (ctypes.c_int64 * 1)(1), (ctypes.c_float * 2)()
    library.wiseale_gather_bytes(rows, 2, 2, positions, 1, 1 / 255, floats, 1)
    # 16 Gaussians in one dimension with means 0, 1, … 15 and variance 1/2: k(i, j) = exp(−(i − j)²/2).
    size = 16
    mu, sigma = (ctypes.c_float * size)(*range(size)), (ctypes.c_float * size)(*[math.sqrt(0.5)] * size)
    columns, log_sums = (ctypes.c_float * (3 * size))(), (ctypes.c_float * size)()
    library.wiseale_log_sum_pairs(mu, sigma, 1, size, size, 0.5, 0.0, columns, None, log_sums, 1)
    exact = [math.log(sum(math.exp(-((i - j) ** 2) / 2) for j in range(size))) for i in range(size)]
    results, expected = [*floats, *log_sums], [0.2, 0.4, *exact]
    if not all(math.isclose(a, b, rel_tol=1e-4) for a, b in zip(results, expected, strict=True)):
        raise RuntimeError("the compiled library computes wrong numbers: its self-test failed")


def doubt_about_folder(folder: Path) -> str | None:
    """Why libraries in this folder may have been written by somebody else, in words; None if they cannot have been."""
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return f"{folder} is a symbolic link"
    if not _is_own(status):
        return f"{folder} belongs to another user"
    if _others_may_write(status):
        return f"other users may write to {folder} (chmod 700 it)"
    for parent in folder.absolute().parents:  # whoever may rename one of them may put another folder in its place
        status = parent.stat()
        if hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid()):
            return f"{parent} belongs to another user"
        # Groups are trusted: many systems give every user one of their own, and let it write to their folders.
        if hasattr(os, "geteuid") and status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
            return f"other users may write to {parent}"
    return None


def is_intact(path: Path) -> bool:
    """Whether the file is the user's own and has the SHA-256 that was recorded when it was built."""
    try:
        private = all(_is_private_file(file) for file in (path, _record(path)))
        return private and _record(path).read_text(encoding="ascii").strip() == sha256(path)
    except (OSError, UnicodeDecodeError):
        return False


def install(built: Path, path: Path) -> None:
    """Move a library that was just built to its place, with its SHA-256 beside it."""
    built.chmod(0o700)
    record = _record(built)
    record.write_text(sha256(built) + "\n", encoding="ascii")
    record.chmod(0o600)
    for file, target in ((built, path), (record, _record(path))):
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())
        os.replace(file, target)


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _is_private_file(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and _is_own(status) and not _others_may_write(status)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def _others_may_write(status: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))

"""Kernels of our own in C, compiled on the machine that uses them, once; whoever calls them can do without."""

from __future__ import annotations

import ctypes
import hashlib
import math
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wiseale.platform.folders import cache_root

BLOCK = 16
"""Channels that lie together in the kernels' matrices, and posteriors that are paired at a time."""

SAMPLES = 16
"""Samples that they take through all layers before the next ones."""

SWITCH = "WISEALE_NATIVE"
"""Environment variable: 0 leaves everything to torch."""

_SOURCE = Path(__file__).with_name("kernels.c")
_ALWAYS = ("-O3", "-std=c11", "-ffp-contract=fast", "-shared", "-fPIC", "-Wno-psabi")
_SECONDS = 120
_AT, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
_SIGNATURES: dict[str, tuple[Any, ...]] = {  # what it returns, then what it takes
    "wiseale_is_parallel": (ctypes.c_int,),
    "wiseale_sizes": (None, _AT),
    "wiseale_convolve": (None, _AT, _INT, _AT, _AT, _AT, _INT, _INT, _INT),
    "wiseale_widen": (ctypes.c_int, _AT, _INT, _INT, _AT, _INT, _FLOAT, _AT, _INT),
    "wiseale_pairs": (None, _AT, _AT, _INT, _INT, _FLOAT, _FLOAT, _AT, _AT, _AT, _INT),
    "wiseale_pair_slopes": (None, *[_AT] * 5, _INT, _INT, _FLOAT, _FLOAT, _FLOAT, _AT, _AT, _INT),
}


@dataclass(frozen=True)
class Native:
    """The compiled kernels, or None, and how that came about.

    Attributes:
        parallel: whether the kernels share torch's threads; else they use one.
    """

    library: ctypes.CDLL | None
    state: str
    parallel: bool = False

    @property
    def threads(self) -> int:
        """How many threads the kernels may use now."""
        return torch.get_num_threads() if self.parallel else 1


@cache
def native() -> Native:
    """The kernels, compiled by the first process that asks on this machine and kept in the cache folder."""
    if os.environ.get(SWITCH) == "0":
        return Native(None, f"not used: ${SWITCH} is 0")
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc", "clang"))), None)
    if compiler is None:
        return Native(None, "not used: no C compiler found")
    try:
        library = _loaded(compiler, cache_root() / "native")
    except (OSError, RuntimeError, AttributeError, subprocess.SubprocessError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        return Native(None, f"not used: {reason}")
    parallel = bool(library.wiseale_is_parallel())
    threads = "torch's threads" if parallel else "one thread"
    return Native(library, f"compiled by {Path(compiler).name} for {threads}", parallel)


def _loaded(compiler: str, folder: Path) -> ctypes.CDLL:
    """The library made of this source by this compiler for this machine; one that cannot be loaded is made again."""
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=_SECONDS, check=True).stdout
    model_config = (_SOURCE.read_bytes(), version, repr((_ALWAYS, *_choices())).encode(), _machine().encode())
    path = folder / f"kernels-{hashlib.sha256(b'|'.join(model_config)).hexdigest()[:20]}.so"
    if path.exists():
        with suppress(OSError, AttributeError):
            return _load(path)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        made = _compile(compiler, Path(temporary) / path.name)
        with made.open("rb") as file:
            os.fsync(file.fileno())  # half a library would crash whoever loads it
        os.replace(made, path)
    return _load(path)


def _compile(compiler: str, path: Path) -> Path:
    """With the best flags this compiler knows."""
    for flags in _choices():
        command = [compiler, *_ALWAYS, str(_SOURCE), *flags, "-o", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if done.returncode == 0:
            return path
    raise OSError(f"{Path(compiler).name} cannot compile {_SOURCE.name}: {done.stderr.strip() or done.returncode}")


def _choices() -> Iterator[tuple[str, ...]]:
    """Flags for this machine's instructions and torch's threads, then for less."""
    for threads in (("-fopenmp", "-Wl,--as-needed", *_threads_of_torch()), ()):
        yield from ((*machine, *threads) for machine in (("-march=native",), ("-mcpu=native",), ()))


def _threads_of_torch() -> list[str]:
    """The OpenMP library that came with torch: a second one would keep threads of its own, in the way of torch's."""
    home = Path(torch.__file__).parent
    found = [*home.glob("lib/libgomp*.so*"), *home.with_name("torch.libs").glob("libgomp*.so*")]
    return [str(path) for path in found[:1]]


def _machine() -> str:
    """What the compiler's choice of instructions depends on: a cache folder may be shared between machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    return f"{platform.system()} {platform.machine()} {features}"


def _load(path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Widening:
    """``rows[chosen].float() * scale`` for bytes on the CPU, in one pass over them; the rows are only read."""

    def __init__(self, rows: Tensor, scale: float) -> None:
        library = native().library
        assert library is not None
        assert rows.dtype == torch.uint8
        assert rows.is_contiguous()
        self._kernel = library.wiseale_widen
        self._rows = rows  # kept: its memory is read
        self._source = rows.data_ptr(), len(rows), math.prod(rows.shape[1:])
        self._scale = scale

    def __call__(self, chosen: Tensor) -> Tensor:
        """Rows at these positions, float32."""
        chosen = chosen.to(torch.int64).contiguous()
        result = torch.empty((len(chosen), *self._rows.shape[1:]), dtype=torch.float32, device="cpu")
        into = result.data_ptr(), native().threads
        if not self._kernel(*self._source, chosen.data_ptr(), len(chosen), self._scale, *into):
            raise IndexError(f"rows {chosen.min()} to {chosen.max()} asked for: there are {len(self._rows)}")
        return result

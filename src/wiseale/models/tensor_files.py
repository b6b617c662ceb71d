"""Tensors in safetensors files: errors of the disk are OSErrors, and a file's header is read before its tensors."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file, save_file
from torch import Tensor

from wiseale.errors import ModelFileError
from wiseale.platform.json_files import parse_table

_MAX_HEADER = 16 << 20
_SMALL = 16 << 20  # bytes of tensors
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
_FLOATS = ("F64", "F32", "F16", "BF16")


@dataclass(frozen=True)
class TensorHeader:
    """What a file says of one tensor; ``dtype`` as safetensors spells it (``"F32"``)."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def is_float(self) -> bool:
        """Whether the numbers are floating-point."""
        return self.dtype in _FLOATS

    @property
    def bytes(self) -> int:
        """Memory that the numbers take."""
        return _SIZES[self.dtype] * math.prod(self.shape)


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a safetensors file that the same people may read as the files beside it; OSError where it cannot be."""
    small = all(tensor.dtype != torch.bfloat16 for tensor in tensors.values())
    small = small and sum(tensor.nbytes for tensor in tensors.values()) < _SMALL
    try:
        if small:  # the same bytes in a third of the time, at the cost of a copy
            save_arrays({name: tensor.numpy() for name, tensor in tensors.items()}, path)
        else:
            save_file(dict(tensors), path)
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        code = int(number[1]) if number else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from None
    if hasattr(os, "geteuid"):
        path.chmod(0o666 & ~_umask())  # safetensors makes files for their owner alone


def read_tensors(path: Path, device: str = "cpu") -> dict[str, Tensor]:
    """The tensors in a file."""
    try:
        return load_file(path, device=device)
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from None


def read_header(path: Path) -> dict[str, TensorHeader]:
    """Names, types and shapes of the tensors in a file, without reading them; the file must have their size."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_HEADER:
                raise ValueError(f"its header would take {length:,} bytes")
            header = parse_table(file.read(length).decode("utf-8"))
            size = os.fstat(file.fileno()).st_size
        header.pop("__metadata__", None)
        headers = {name: _entry(values) for name, values in header.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} cannot be read: not a safetensors file ({error})") from None
    expected = 8 + length + sum(tensor.bytes for tensor in headers.values())
    if size != expected:
        raise ModelFileError(f"{path} cannot be read: it has {size:,} bytes where its header says {expected:,}")
    return headers


def _entry(values: object) -> TensorHeader:
    if not isinstance(values, dict) or values["dtype"] not in _SIZES or not isinstance(values["shape"], list):
        raise ValueError("its header is malformed")
    shape = tuple(values["shape"])
    if any(type(length) is not int or not 0 <= length < 1 << 40 for length in shape) or len(shape) > 8:
        raise ValueError("its header has an impossible shape")
    return TensorHeader(values["dtype"], shape)


def header_of(tensor: Tensor) -> TensorHeader:
    """What a file would say of this tensor."""
    name = str(tensor.dtype).removeprefix("torch.")
    kind = {"bfloat16": "BF16", "bool": "BOOL", "uint8": "U8"}.get(name) or f"{name[0].upper()}{tensor.itemsize * 8}"
    return TensorHeader(kind, tuple(tensor.shape))


def misfit(given: Mapping[str, TensorHeader], wanted: Mapping[str, TensorHeader]) -> str | None:
    """The first tensor that is missing, unknown, or of another shape or kind of number, in words; None if all fit."""
    for name in sorted(given.keys() | wanted.keys()):
        if name not in given:
            return f"{name} is missing"
        if name not in wanted:
            return f"{name} is not one of the network's"
        one, other = given[name], wanted[name]
        if one.shape != other.shape:
            return f"{name} has the shape {list(one.shape)} where the network has {list(other.shape)}"
        if one.dtype != other.dtype and not (one.is_float and other.is_float):
            return f"{name} holds {one.dtype} where the network has {other.dtype}"
    return None


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

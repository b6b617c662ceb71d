"""Records, constants and functions shared with C: declared here by name, exported by C, compared when it is loaded."""

from __future__ import annotations

import ctypes
import itertools
from enum import IntEnum
from typing import Any

BLOCK = 16
"""Channel block: channels of a result that are computed and stored side by side."""

SAMPLES = 16
"""Batch tile: samples taken through all operations before the next ones."""

NO_BUFFER = -1

_POINTER, _INT, _FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float
_FUNCTIONS: dict[str, tuple[Any, ...]] = {  # result, then arguments
    "wiseale_is_parallel": (ctypes.c_int,),
    "wiseale_convolve": (None, _POINTER, _INT, *[_POINTER] * 4, _INT, _INT, _INT),
    "wiseale_gather_bytes": (ctypes.c_int, _POINTER, _INT, _INT, _POINTER, _INT, _FLOAT, _POINTER, _INT),
    "wiseale_log_sum_pairs": (None, _POINTER, _POINTER, *[_INT] * 3, _FLOAT, _FLOAT, *[_POINTER] * 3, _INT),
    "wiseale_log_sum_pairs_backward": (None, *[_POINTER] * 5, *[_INT] * 3, *[_FLOAT] * 3, _POINTER, _POINTER, _INT),
}


class Kind(IntEnum):
    """What an operation does."""

    PACK = 0
    NCHW_TO_NHWC = 1
    MATRIX_PRODUCTS = 2
    OUTER_PRODUCTS = 3
    BIAS_GRADIENT = 4
    NHWC_TO_NCHW = 5
    UNPACK = 6


class MatrixProduct(ctypes.Structure):
    """One output position as a sum of products of contiguous segments with packed weights. Offsets count floats."""

    _fields_ = [
        ("a", _INT),  # first float of the first segment in a sample of the input
        ("b", _INT),  # first float in the packed weights
        ("c", _INT),  # first float in a sample of the output
        ("segments", _INT),  # number of segments: kernel rows inside the image
        ("length", _INT),  # floats in each
    ]


class OuterProduct(ctypes.Structure):
    """One kernel tap, or row of taps, of a weight's gradient as a sum of outer products. Offsets count floats."""

    _fields_ = [
        ("a", _INT),  # first float in a sample of the convolution's input
        ("b", _INT),  # first float in a sample of its output
        ("c", _INT),  # first float in the partial gradients
        ("rows", _INT),  # positions to sum over
        ("columns", _INT),
    ]


class Operation(ctypes.Structure):
    """One pass of C over signals. Buffers are numbers (-1: none), strides count floats; as in GEMM, c = a · b."""

    _fields_ = [
        ("kind", _INT),
        ("first", _INT),  # first entry of its table or index
        ("count", _INT),  # number of them; without a table or index, positions in a sample
        ("a", _INT),  # left operand, and its stride from one sample to the next
        ("a_sample", _INT),
        ("b", _INT),  # right operand: packed weights, or the second signal of outer products
        ("b_sample", _INT),
        ("c", _INT),  # result
        ("c_sample", _INT),
        ("channels", _INT),  # of the result
        ("block_stride", _INT),  # from one channel block of packed weights or partial gradients to the next
        ("a_row", _INT),  # strides from one segment, or one row of positions, to the next
        ("b_row", _INT),
        ("a_column", _INT),  # strides from one position to the next
        ("b_column", _INT),
        ("pad_left", _INT),  # zeros that NCHW_TO_NHWC writes before and after every image row, in positions
        ("pad_right", _INT),
        ("image_rows", _INT),  # rows of the image that NCHW_TO_NHWC reads
        ("outer_rows", _INT),  # floats of a in every outer product
        ("bias", _INT),  # buffer added to the result
        ("relu_mask", _INT),  # buffer: the result is zeroed where this is not positive
        ("relu", _INT),  # 1 to apply ReLU to the result
    ]

    def __init__(self, kind: Kind, **fields: int) -> None:
        super().__init__(kind=kind, **({"bias": NO_BUFFER, "relu_mask": NO_BUFFER} | fields))

    def using(self, **fields: int) -> Operation:
        """A copy with other values in these fields."""
        values: dict[str, int] = {name: getattr(self, name) for name, _ in self._fields_}  # type: ignore[misc]
        return Operation(**(values | fields))  # type: ignore[arg-type]


class _Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", _INT)]


def declare_functions(library: ctypes.CDLL) -> None:
    """Set argument and result types; AttributeError if the library lacks a function."""
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


def difference(library: ctypes.CDLL) -> str | None:
    """Where the library's records or constants differ from those above, in words; None if nowhere."""
    ours = {"BLOCK": BLOCK, "SAMPLES": SAMPLES, **{kind.name: kind.value for kind in Kind}}
    for record in (MatrixProduct, OuterProduct, Operation):
        ours[record.__name__] = ctypes.sizeof(record)
        ours |= {f"{record.__name__}.{field}": getattr(record, field).offset for field, *_ in record._fields_}
    table = ctypes.pointer(_Entry.in_dll(library, "wiseale_layout"))  # it ends with an entry without a name
    entries = itertools.takewhile(lambda entry: entry.name is not None, map(table.__getitem__, itertools.count()))
    theirs = {entry.name.decode(): entry.value for entry in entries}
    for name in ours | theirs:
        if ours.get(name) != theirs.get(name):
            return f"the compiled library has {name} = {theirs.get(name)}, this version of wiseale {ours.get(name)}"
    return None

"""JSON of strangers: bounded, typed, and with a checksum of its own."""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Literal

import pytest

from wiseale.platform.json_files import parse_table, read_text, record, sealed, unseal


@dataclasses.dataclass(frozen=True)
class Inner:
    n: int


@dataclasses.dataclass(frozen=True)
class Outer:
    x: float
    name: str
    kind: Literal["a", "b"]
    terms: Mapping[str, float] | None
    shape: tuple[int, ...] = ()
    inner: Inner | None = None


GOOD = {"x": 1, "name": "ü", "kind": "a", "terms": {"loss": 0.5}, "shape": [1, 2], "inner": {"n": 3}}


def test_what_is_right_is_read():
    assert record(Outer, GOOD) == Outer(1, "ü", "a", {"loss": 0.5}, (1, 2), Inner(3))
    assert record(Outer, {"x": 0.1, "name": "", "kind": "b", "terms": None}).shape == ()


@pytest.mark.parametrize(
    "change",
    [
        *({"x": value} for value in (True, "1", None, [], float("nan"), float("inf"), 10**400)),
        *({"name": value} for value in (1, None, ["a"], "\ud800")),
        *({"kind": value} for value in ("c", 1, None, [])),
        *({"terms": value} for value in ({"loss": True}, {"loss": "1"}, [1], 3)),
        *({"shape": value} for value in ([1.0], ["1"], 3, [True], {"0": 1}, [10**30])),
        *({"inner": value} for value in ({}, {"n": 1.0}, {"n": 1, "m": 2}, [1])),
        {"surprise": 1},
    ],
)
def test_another_type_is_refused(change):
    with pytest.raises(ValueError, match=next(iter(change)) + r"|\bn\b|\bm\b"):
        record(Outer, GOOD | change)


@pytest.mark.parametrize(
    "text", ["[" * 10**6, '{"a":' * 10**5, "NaN", "[]", "3", '{"a": NaN}', '{"a": Infinity}', "", "{"]
)
def test_text_that_is_no_table_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse_table(text)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
def test_neither_pipes_nor_giants_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_text(tmp_path / "pipe")
    with (tmp_path / "giant").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="larger than 1 MB"):
        read_text(tmp_path / "giant", 1 << 20)


def test_every_flipped_bit_of_a_sealed_text_is_noticed_or_changes_nothing():
    values = {"elbo": -1.25, "names": ["a", "b"], "none": None}
    text = sealed(values).encode()
    assert unseal(json.loads(text)) == values
    for place in range(len(text)):
        for bit in range(8):
            damaged = bytearray(text)
            damaged[place] ^= 1 << bit
            try:
                found = unseal(parse_table(damaged.decode()))
            except ValueError:
                continue
            assert found == values or set(found) != set(values)  # whitespace, or a key that record() refuses

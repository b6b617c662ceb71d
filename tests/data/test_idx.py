"""The IDX reader: what the format's definition says, and one line for every way a file can be wrong."""

import contextlib
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from tests.data.idx_files import idx_bytes

from wiseale.data.sets.mnist import read_idx
from wiseale.errors import DataError

X = np.random.default_rng(1).integers(0, 256, (6, 5, 4), np.uint8)


def line(path: Path, axes: int = 3) -> str:
    with pytest.raises(DataError) as caught:
        read_idx(path, axes)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("name", ["x-idx3-ubyte", "x-idx3-ubyte.gz"])
def test_reads_raw_and_zipped_whatever_the_name(tmp_path: Path, zipped: bool, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(idx_bytes(X)) if zipped else idx_bytes(X))
    np.testing.assert_array_equal(read_idx(tmp_path / name, 3), X)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not an IDX file: it begins with nothing"),
        (b"\x89PNG" + bytes(200), "not an IDX file"),
        (idx_bytes(X, kind=0x0D), "type 0x0d"),
        (idx_bytes(X[0]), "has 2 axes where 3 are needed"),
        (idx_bytes(X)[:10], "cut short"),
        (idx_bytes(X) + b"\0", "goes on after its 120 bytes"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 0, 28, 28), "its header says 0 x 28 x 28"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 2**32 - 1, 2**32 - 1, 2**32 - 1) + bytes(100), "its header says"),
        (bytes([0, 0, 8, 3]) + struct.pack(">3I", 10**6, 28, 28) + bytes(100), "its header says"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_wrong_files_are_one_line(tmp_path: Path, content: bytes, said: str, zipped: bool) -> None:
    path = tmp_path / "x-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(content) if zipped else content)
    assert said in line(path)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for whole in (idx_bytes(X), gzip.compress(idx_bytes(X))):
        for length in range(len(whole)):
            path.write_bytes(whole[:length])
            assert line(path)


def test_every_damaged_byte_of_the_zipped_content_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    whole = gzip.compress(idx_bytes(X), mtime=0)
    for place in range(10, len(whole)):  # the ten bytes before are gzip's own header
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        line(path)
    for place in range(10):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with contextlib.suppress(DataError):
            np.testing.assert_array_equal(read_idx(path, 3), X)


def test_a_small_gzip_cannot_promise_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">3I", 2_000_000, 28, 28) + bytes(10**6)))
    assert "its header says 2000000 x 28 x 28" in line(path)


def test_a_missing_or_unreadable_file_is_one_line(tmp_path: Path) -> None:
    assert "cannot read" in line(tmp_path / "none")
    assert "cannot read" in line(tmp_path)

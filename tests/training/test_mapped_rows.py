"""Rows of mapped files are asked for ahead while the disk is waited for, and are the same rows."""

import mmap

import numpy as np
import pytest
import torch

from wiseale.data.dataset import Rows
from wiseale.training import batches, mapped_rows
from wiseale.training.batches import Batches
from wiseale.training.mapped_rows import MappedRows


@pytest.fixture
def mapped(tmp_path):
    """Rows of 5,000 bytes, which begin and end within pages."""
    path = tmp_path / "x.npy"
    np.save(path, np.random.default_rng(0).integers(0, 256, (40, 5, 1000), np.uint8))
    return np.load(path, mmap_mode="r")


class Spy:
    """A mapping that notes what it is asked for."""

    def __init__(self, mapping):
        self.mapping, self.asked = mapping, []

    def madvise(self, option, start, length):
        assert option == mmap.MADV_WILLNEED
        self.mapping.madvise(option, start, length)
        self.asked.append((start, length))


class Deaf:
    """A mapping that takes no advice."""

    def madvise(self, option, start, length):
        raise OSError(22, "Invalid argument")


def test_rows_are_asked_for_after_a_wait_and_for_a_while(mapped, monkeypatch):
    monkeypatch.setattr(batches, "_IN_MEMORY_BYTES", 0)
    monkeypatch.setattr(mapped_rows, "_PREFETCHED_BATCHES", 2)
    monkeypatch.setattr(mapped_rows, "major_page_faults", lambda: 0)
    reader = Batches(Rows(mapped[3:], "unit"))
    spy = reader._mapped._mapping = Spy(reader._mapped._mapping)
    positions = torch.tensor([30, 0, 7])
    expected = torch.from_numpy(np.array(mapped[3:][[30, 0, 7]])).float() / 255

    torch.testing.assert_close(reader.read(positions), expected)
    assert not spy.asked
    reader._mapped.after_reading(-1)  # the disk was waited for
    for _ in range(3):
        torch.testing.assert_close(reader.read(positions), expected)
    assert len(spy.asked) == 2 * 3

    whole = bytes(np.frombuffer(spy.mapping, np.uint8))
    for (start, length), position in zip(spy.asked, [30, 0, 7], strict=False):
        assert start % mmap.PAGESIZE == 0
        assert mapped[3 + position].tobytes() in whole[start : start + length]


def test_only_mapped_arrays_are_asked_for(mapped):
    assert MappedRows.of(mapped) is not None
    assert MappedRows.of(np.asarray(mapped)) is not None
    assert MappedRows.of(np.array(mapped)) is None
    assert MappedRows.of(mapped[::2]) is None


def test_a_file_system_that_takes_no_advice_is_read_as_before(mapped, monkeypatch):
    monkeypatch.setattr(batches, "_IN_MEMORY_BYTES", 0)
    reader = Batches(Rows(mapped, "unit"))
    reader._mapped._mapping = Deaf()
    reader._mapped.after_reading(-1)
    torch.testing.assert_close(reader.read(torch.tensor([4])), torch.from_numpy(np.array(mapped[[4]])).float() / 255)


def test_nothing_is_asked_for_on_systems_without_madvise(mapped, monkeypatch):
    monkeypatch.delattr(mmap, "MADV_WILLNEED", raising=False)
    assert MappedRows.of(mapped) is None

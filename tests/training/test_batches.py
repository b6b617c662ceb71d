import numpy as np
import pytest
import torch

from wiseale.data.dataset import Preset, Rows
from wiseale.spaces import plain_space
from wiseale.training import batches
from wiseale.training.batches import Batches

LEVELS = np.random.default_rng(0).integers(0, 256, size=(40, 1, 3, 3)).astype(np.uint8)
PRESET = Preset("mlp", "gaussian", 2)


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "x.npy", LEVELS)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


@pytest.mark.parametrize("reading", ["unit", "threshold", "dynamic"])
def test_memory_mapped_and_in_memory_rows_read_the_same(reading, mapped, monkeypatch):
    index = np.array([3, 5, 8, 13, 21])
    positions = torch.tensor([4, 0, 2])
    in_memory = Batches(Rows(LEVELS, reading), index, seed=7).read(positions, 11)
    monkeypatch.setattr(batches, "_IN_MEMORY_BYTES", 0)
    from_file = Batches(Rows(mapped, reading), index, seed=7).read(positions, 11)
    assert torch.equal(in_memory, from_file)
    stored = torch.from_numpy(LEVELS[[21, 3, 8]]).double() / 255
    if reading == "unit":
        torch.testing.assert_close(in_memory.double(), stored, atol=1e-7, rtol=0)
    else:
        assert set(in_memory.unique().tolist()) <= {0.0, 1.0}
    if reading == "threshold":
        assert torch.equal(in_memory.double(), (stored >= 0.5).double())


@pytest.mark.parametrize("reading", ["unit", "threshold", "dynamic"])
def test_a_part_is_what_the_whole_would_have_there(reading):
    batches = Batches(Rows(LEVELS, reading), seed=7)
    positions = torch.tensor([4, 0, 2, 31, 9, 17])
    whole = batches.read(positions, 11)
    parts = [batches.read_part(positions, 11, part) for part in (slice(0, 2), slice(2, 4), slice(4, 6))]
    assert torch.equal(torch.cat(parts), whole)


def test_a_set_too_large_for_each_process_stays_where_it_is(monkeypatch):
    """What one process may hold, two of a machine may hold together."""
    monkeypatch.setattr(batches, "_IN_MEMORY_BYTES", LEVELS.size * 4)
    rows = Rows(LEVELS.astype(np.float32))
    one, shared = Batches(rows), Batches(rows, copies=2)
    rows.x[0] = -1
    assert float(one.read(torch.tensor([0])).min()) >= 0
    assert float(shared.read(torch.tensor([0])).max()) == -1


def test_dynamic_binarisation_draws_anew_with_the_levels_as_probabilities():
    batches = Batches(Rows(LEVELS, "dynamic"), seed=0)
    everything = torch.arange(40)
    draws = torch.stack([batches.read(everything, counter) for counter in range(400)])
    expected = torch.from_numpy(LEVELS).float() / 255
    error = (expected * (1 - expected) / 400).sqrt()
    assert bool(((draws.mean(0) - expected).abs() <= 5 * error + 1e-6).all())
    assert not torch.equal(draws[0], draws[1])


def fit_units(rows, scaling, index):
    return plain_space(rows.x.shape[1:], rows.reading, scaling).fit_units(rows.x, index)


@pytest.mark.parametrize(("scaling", "axis"), [("columns", 0), ("global", None)])
def test_units_are_the_training_rows_moments(scaling, axis):
    x = (np.random.default_rng(1).normal(size=(9000, 3)) * [1, 10, 0.1] + [1e3, 0, -4]).astype(np.float32)
    index = np.arange(0, 9000, 2)
    units = fit_units(Rows(x), scaling, index)
    chosen = x[index].astype(np.float64)
    np.testing.assert_allclose(units.mean.numpy(), chosen.mean(axis), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(units.scale.numpy(), chosen.std(axis), rtol=1e-5)


def test_a_constant_column_is_centred_and_keeps_its_scale():
    x = np.ones((50, 2), np.float32) * 3
    x[:, 1] = np.arange(50)
    units = fit_units(Rows(x), "columns", np.arange(50))
    assert units.scale[0] == 1
    assert torch.all(units(torch.from_numpy(x))[:, 0] == 0)


def test_float64_is_standardised_before_it_is_rounded():
    """Seconds since 1970 that span a minute: float32 alone would hold them to 128 s."""
    minute = np.random.default_rng(2).uniform(0, 60, (300, 2))
    rows = Rows(1.7e9 + minute)
    units = fit_units(rows, "columns", np.arange(300))
    expected = (minute - minute.mean(0)) / minute.std(0)
    np.testing.assert_allclose(Batches(rows, units=units).read(torch.arange(300)).numpy(), expected, atol=1e-5)


def test_units_stay_where_they_are_when_a_model_moves():
    units = fit_units(Rows(np.ones((4, 2)) * 1e9), "columns", np.arange(4))
    moved = torch.nn.ModuleDict({"units": units}).to("meta").half()["units"]
    assert moved.mean.dtype == torch.float64
    assert moved.mean.device.type == "cpu"


def test_pixels_are_standardised_after_reading(mapped):
    units = fit_units(Rows(mapped, "unit"), "global", np.arange(40))
    read = Batches(Rows(mapped, "unit"), units=units).read(torch.arange(40))
    assert float(read.mean()) == pytest.approx(0, abs=1e-5)
    assert float(read.std(correction=0)) == pytest.approx(1, abs=1e-5)

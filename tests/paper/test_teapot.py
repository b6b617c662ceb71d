import math

import numpy as np
import pytest
from scipy import stats

from wiseale.config import build, spec_of
from wiseale.data import load_dataset
from wiseale.errors import ConfigError, DataError
from wiseale.paper.teapot import Teapot
from wiseale.paper.teapot_render import render

MOST = {"azimuth": 2 * math.pi, "elevation": math.pi / 2, "red": 1, "green": 1, "blue": 1}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "teapot"


def test_factors_are_uniform_and_independent():
    factors = Teapot().factors(0, 20_000)
    assert list(factors) == list(MOST)
    for name, most in MOST.items():
        assert stats.kstest(factors[name] / most, "uniform").pvalue > 1e-3
    table = np.stack(list(factors.values()))
    correlation = np.corrcoef(np.hstack([table[:, :-1], table[:, 1:]]), table[:, [*range(1, 20_000), *range(19_999)]])
    assert np.abs(correlation - np.eye(10)).max() < 0.05  # between factors, and between neighbours
    assert len(np.unique(table[:2], axis=1).T) == 20_000  # every image has its own pose


def test_an_image_depends_on_seed_and_index_alone():
    images, factors = Teapot().images(0, 40), Teapot().factors(0, 40)
    np.testing.assert_array_equal(np.concatenate([Teapot(n=10).images(*part) for part in ((0, 7), (7, 40))]), images)
    for name, values in Teapot(n=777).factors(13, 29).items():
        np.testing.assert_array_equal(values, factors[name][13:29])
    assert (Teapot(seed=1).images(0, 40) != images).any(axis=(1, 2, 3)).all()


@pytest.mark.parametrize("workers", [1, 3])
def test_chunks_come_in_order_whatever_the_workers(workers, monkeypatch):
    monkeypatch.setattr("wiseale.paper.teapot._CHUNK", 8)
    parts = list(Teapot().chunks(5, 50, workers))
    assert {len(images) for images, _ in parts[:-1]} == {8}
    np.testing.assert_array_equal(np.concatenate([images for images, _ in parts]), Teapot().images(5, 50))
    azimuth = np.concatenate([factors["azimuth"] for _, factors in parts])
    np.testing.assert_array_equal(azimuth, Teapot().factors(5, 50)["azimuth"])


def test_the_colour_multiplies_the_shading_of_the_pose():
    images, factors = Teapot(seed=3).images(100, 120), Teapot(seed=3).factors(100, 120)
    assert images.shape == (20, 3, 64, 64)
    assert images.dtype == np.uint8
    grey = render(factors["azimuth"], factors["elevation"])
    for channel, name in enumerate(("red", "green", "blue")):
        expected = 255 * grey * factors[name][:, None, None]
        assert np.abs(images[:, channel] - expected).max() <= 0.5 + 1e-3


def test_load_splits_maps_and_remembers(cache):
    dataset = load_dataset("teapot:n=50,seed=2")
    assert (len(dataset.train), len(dataset.test), len(Teapot(n=50, seed=2).rows("validation"))) == (40, 5, 5)
    assert isinstance(dataset.train.x, np.memmap)
    assert dataset.train.reading == "unit"
    assert dataset.circular == {"azimuth": 2 * math.pi}
    assert dataset.preset.latent_dim == 10
    np.testing.assert_array_equal(dataset.test.x, Teapot(seed=2).images(45, 50))
    np.testing.assert_array_equal(dataset.test.factors["blue"], Teapot(seed=2).factors(45, 50)["blue"])
    folder = cache / "v1-seed2-n50"
    written = (folder / "x.npy").stat().st_mtime_ns
    again, other = load_dataset("teapot:n=50,seed=2"), load_dataset("teapot:n=50,seed=3")
    assert (folder / "x.npy").stat().st_mtime_ns == written
    assert dataset.fingerprint == again.fingerprint != other.fingerprint
    assert build("dataset", spec_of("dataset", Teapot(n=50, seed=2))) == Teapot(n=50, seed=2)


def test_an_interrupted_rendering_goes_on_where_it_stopped(cache, monkeypatch):
    whole, starts = Teapot.chunks, []

    def interrupted(self, start, stop):
        yield next(whole(self, start, stop))
        raise KeyboardInterrupt

    def counted(self, start, stop):
        starts.append(start)
        return whole(self, start, stop)

    monkeypatch.setattr(Teapot, "chunks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_dataset("teapot:n=300")
    assert not (cache / "v1-seed0-n300").exists()
    monkeypatch.setattr(Teapot, "chunks", counted)
    resumed = load_dataset("teapot:n=300")
    assert starts[0] > 0
    np.testing.assert_array_equal(resumed.train.x, Teapot().images(0, 240))


def test_a_damaged_cache_is_rendered_again(cache):
    load_dataset("teapot:n=10")
    images = cache / "v1-seed0-n10" / "x.npy"
    images.write_bytes(images.read_bytes()[:-1])
    np.testing.assert_array_equal(load_dataset("teapot:n=10").train.x, Teapot().images(0, 8))


def test_a_cache_that_cannot_be_written_is_named(cache, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(DataError, match="cannot write"):
        load_dataset("teapot:n=10")


def test_too_few_images_are_refused():
    with pytest.raises(ConfigError, match="n must be at least 10"):
        load_dataset("teapot:n=9")

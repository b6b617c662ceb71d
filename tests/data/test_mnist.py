"""MNIST and Fashion-MNIST: the real files where they are, small ones of the same form everywhere."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from tests.data.idx_files import contents, idx_bytes, write_set

from wiseale.config import build, spec_of
from wiseale.data import load_dataset
from wiseale.errors import ConfigError, DataError

DEBIAN = Path("/usr/share/datasets/fashion-mnist")


@pytest.mark.parametrize(("name", "folder"), [("mnist", "mnist"), ("fashion_mnist", "fashion-mnist")])
@pytest.mark.parametrize("zipped", [False, True])
def test_the_files_become_images_and_labels(tmp_path: Path, name: str, folder: str, zipped: bool) -> None:
    files = contents(n=30, n_test=10)
    write_set(tmp_path / folder, files, zipped=zipped)
    dataset = load_dataset(name, tmp_path)
    assert dataset.test is not None
    for rows, part in ((dataset.train, "train"), (dataset.test, "t10k")):
        assert rows.x.dtype == np.uint8
        assert rows.x.shape == (len(rows), 1, 28, 28)
        assert rows.x.tobytes() == files[f"{part}-images-idx3-ubyte"][16:]
        assert bytes(rows.factors["label"].tolist()) == files[f"{part}-labels-idx1-ubyte"][8:]
    assert dataset.preset.network == "paper_mnist"
    assert dataset.preset.batch_size == 30
    first = load_dataset(f"{name}:n=7", tmp_path)
    np.testing.assert_array_equal(first.train.x, dataset.train.x[:7])
    assert first.fingerprint != dataset.fingerprint


def test_raw_and_zipped_files_have_one_fingerprint(tmp_path: Path) -> None:
    write_set(tmp_path / "raw" / "mnist", contents(), zipped=False)
    write_set(tmp_path / "gz" / "mnist", contents(), zipped=True)
    prints = [load_dataset("mnist", tmp_path / kind).fingerprint for kind in ("raw", "gz")]
    assert prints[0] == prints[1]
    write_set(tmp_path / "gz" / "mnist", contents() | {"t10k-labels-idx1-ubyte": idx_bytes(np.ones(10, np.uint8))})
    assert load_dataset("mnist", tmp_path / "gz").fingerprint != prints[0]


@pytest.mark.parametrize(
    ("spec", "reading", "likelihood"),
    [
        ("mnist", "threshold", "bernoulli"),
        ("mnist:binarize=dynamic", "dynamic", "bernoulli"),
        ("mnist:binarize=false", "unit", "gaussian"),
        ("fashion_mnist", "unit", "gaussian"),
        ("fashion_mnist:binarize=threshold", "threshold", "bernoulli"),
    ],
)
def test_binarising_decides_reading_and_likelihood(tmp_path: Path, spec: str, reading: str, likelihood: str) -> None:
    write_set(tmp_path / spec.partition(":")[0], contents())
    dataset = load_dataset(spec, tmp_path)
    assert dataset.test is not None
    assert (dataset.train.reading, dataset.test.reading) == (reading, reading)
    assert dataset.preset.likelihood == likelihood
    source = build("dataset", spec)
    assert build("dataset", spec_of("dataset", source)) == source


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_absent_files_say_what_to_run(tmp_path: Path, name: str) -> None:
    said = rf"run `wiseale data fetch {name}`, or `wiseale data fetch {name} --from DIR`"
    with pytest.raises(DataError, match=said):
        load_dataset(name, tmp_path)
    files = contents()
    del files["t10k-labels-idx1-ubyte"]
    write_set(tmp_path / name, files)
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte is missing"):
        load_dataset(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train-labels-idx1-ubyte", idx_bytes(np.zeros(29, np.uint8)), "30 images but .* 29 labels"),
        ("t10k-images-idx3-ubyte", idx_bytes(np.zeros((10, 32, 28), np.uint8)), "32 by 28 pixels"),
        ("train-images-idx3-ubyte", idx_bytes(np.zeros(30, np.uint8)), "1 axes where 3 are needed"),
        ("train-images-idx3-ubyte", b"not at all", "not an IDX file"),
    ],
)
def test_wrong_files_are_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    write_set(tmp_path / "mnist", contents() | {name: content})
    with pytest.raises(DataError) as caught:
        load_dataset("mnist", tmp_path)
    assert "\n" not in str(caught.value)
    assert re.search(said, str(caught.value))


def test_wrong_settings_are_one_line(tmp_path: Path) -> None:
    write_set(tmp_path / "mnist", contents())
    with pytest.raises(ConfigError, match=r"binarize .*'false'.*'threshold'.*'dynamic'.*'maybe'"):
        load_dataset("mnist:binarize=maybe", tmp_path)
    with pytest.raises(ConfigError, match="n must be at least 2"):
        load_dataset("mnist:n=1", tmp_path)
    with pytest.raises(DataError, match="n=31 is more than the 30"):
        load_dataset("mnist:n=31", tmp_path)


def test_the_real_mnist(tmp_path: Path) -> None:
    root = os.environ.get("WISEALE_DATA")
    if root is None or not (Path(root) / "mnist").is_dir():
        pytest.skip("set WISEALE_DATA to a folder that has mnist/")
    dataset = load_dataset("mnist", Path(root))
    assert dataset.test is not None
    assert (len(dataset.train), len(dataset.test)) == (60_000, 10_000)
    known = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]  # as published with the set
    known_test = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(dataset.train.factors["label"].astype(int)).tolist() == known
    assert np.bincount(dataset.test.factors["label"].astype(int)).tolist() == known_test
    assert dataset.train.x.mean() / 255 == pytest.approx(0.1307, abs=5e-5)  # the mean and scale everyone normalises by
    assert dataset.train.x.std() / 255 == pytest.approx(0.3081, abs=5e-5)


def test_the_real_fashion_mnist(tmp_path: Path) -> None:
    if not DEBIAN.is_dir():
        pytest.skip("install Debian's dataset-fashion-mnist")
    (tmp_path / "fashion_mnist").symlink_to(DEBIAN)
    dataset = load_dataset("fashion_mnist", tmp_path)
    assert dataset.test is not None
    assert np.bincount(dataset.train.factors["label"].astype(int)).tolist() == [6000] * 10
    assert np.bincount(dataset.test.factors["label"].astype(int)).tolist() == [1000] * 10
    assert dataset.train.x.mean() / 255 == pytest.approx(0.2860, abs=5e-5)
    assert dataset.train.x.std() / 255 == pytest.approx(0.3530, abs=5e-5)

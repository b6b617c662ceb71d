"""People's arrays: what is kept of them, what is chosen for them, and one line for everything that cannot be used."""

import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wiseale.data import load_dataset
from wiseale.data.defaults import describe
from wiseale.data.source import load_path, split_path
from wiseale.errors import DataError, WiseAleError

RNG = np.random.default_rng(3)


def saved(folder: Path, array: Any, name: str = "x.npy") -> str:
    np.save(folder / name, array, allow_pickle=True)
    return str(folder / name)


def zipped(folder: Path, **arrays: Any) -> str:
    np.savez_compressed(folder / "digits.npz", **arrays)
    return str(folder / "digits.npz")


def line(spec: str, **options: Any) -> str:
    """The error of loading, which must be a single line."""
    with pytest.raises(WiseAleError) as caught:
        load_path(spec, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", ">f4", "i1", "i4", "i8", "u2", "u8", "g"])
def test_every_real_number_is_kept_exactly_in_float32_or_float64(tmp_path: Path, dtype: str) -> None:
    values = RNG.integers(0, 100, (20, 3)).astype(dtype)
    x = load_path(saved(tmp_path, values)).train.x
    assert x.dtype == (np.float64 if dtype in ("f8", ">f8", "i4", "i8", "u8", "g") else np.float32)
    np.testing.assert_array_equal(x, np.asarray(values, "f8"))


@pytest.mark.parametrize(
    ("shape", "noise", "scaling"),
    [((30, 5), "columns", "columns"), ((30, 2, 16), "learned", "global"), ((30, 1, 8, 8), "learned", "global")],
)
def test_settings_follow_from_shape_and_range(tmp_path: Path, shape: tuple[int, ...], noise: str, scaling: str) -> None:
    real = load_path(saved(tmp_path, RNG.normal(size=shape)))
    assert (real.preset.network, real.preset.likelihood, real.space.scaling) == (
        "mlp",
        f"gaussian:x_sigma={noise}",
        scaling,
    )
    assert real.test is None
    assert real.preset.batch_size == 30
    binary = load_path(saved(tmp_path, RNG.integers(0, 2, shape).astype(bool)))
    assert (binary.preset.network, binary.preset.likelihood, binary.space.scaling) == ("mlp", "bernoulli", "none")
    assert set(np.unique(binary.train.x)) == {0, 1}


def test_what_was_chosen_is_said_in_one_line(tmp_path: Path) -> None:
    signals = load_path(saved(tmp_path, RNG.normal(size=(1200, 1, 16))))
    assert describe(signals) == (
        "1,200 rows, signals of 1 channel and 16 samples; network mlp, likelihood gaussian:x_sigma=learned, "
        "latent dimension 8, standardised as a whole"
    )
    assert "rows, 5 columns; network mlp" in describe(load_path(saved(tmp_path, RNG.normal(size=(20, 5)))))
    masks = load_path(saved(tmp_path, RNG.integers(0, 2, (20, 3, 8, 9))))
    assert "images of 3 channels, 8 by 9 pixels; network mlp, likelihood bernoulli" in describe(masks)


def test_one_value_other_than_0_and_1_makes_it_gaussian(tmp_path: Path) -> None:
    x = np.zeros((50, 4), np.float32)
    x[::2] = 1
    assert load_path(saved(tmp_path, x)).preset.likelihood == "bernoulli"
    x[49, 3] = 0.5
    assert load_path(saved(tmp_path, x)).preset.likelihood == "gaussian:x_sigma=columns"


@pytest.mark.parametrize(("features", "latent_dim"), [(1, 1), (2, 1), (3, 1), (4, 2), (17, 8), (1000, 8)])
def test_latent_dim_is_half_the_features_and_at_most_8(tmp_path: Path, features: int, latent_dim: int) -> None:
    assert load_path(saved(tmp_path, RNG.normal(size=(9, features)))).preset.latent_dim == latent_dim


def test_images_of_8_bits_stay_8_bits(tmp_path: Path) -> None:
    grey = load_path(saved(tmp_path, RNG.integers(0, 256, (10, 1, 8, 8), np.uint8)))
    assert grey.train.x.dtype == np.uint8
    assert (grey.train.reading, grey.preset.likelihood, grey.space.scaling) == (
        "unit",
        "gaussian:x_sigma=learned",
        "global",
    )
    ink = load_path(saved(tmp_path, RNG.choice(np.array([0, 255], np.uint8), (10, 1, 8, 8))))
    assert (ink.train.reading, ink.preset.likelihood, ink.space.scaling) == ("unit", "bernoulli", "none")
    mask = load_path(saved(tmp_path, RNG.integers(0, 2, (10, 1, 8, 8), np.uint8)))
    assert (mask.train.reading, mask.preset.likelihood, mask.space.scaling) == ("values", "bernoulli", "none")
    table = load_path(saved(tmp_path, RNG.integers(0, 256, (10, 64), np.uint8)))
    assert (table.train.x.dtype, table.train.reading) == (np.float32, "values")


@pytest.mark.parametrize(("dtype", "in_place"), [("f4", True), ("f8", True), (">f8", False), ("i8", False)])
def test_files_of_native_floats_are_read_in_place(tmp_path: Path, dtype: str, in_place: bool) -> None:
    x = load_path(saved(tmp_path, np.zeros((4, 2), dtype))).train.x
    assert isinstance(x, np.memmap) == in_place


def test_column_major_files_hold_the_same_rows(tmp_path: Path) -> None:
    x = RNG.normal(size=(20, 5)).astype("f4")
    rows = load_path(saved(tmp_path, np.asfortranarray(x))).train.x
    np.testing.assert_array_equal(rows, x)
    assert rows.flags.c_contiguous


def test_blocks_cover_a_file_larger_than_one(tmp_path: Path) -> None:
    x = np.arange(3_000_000.0).reshape(-1, 2)
    whole = load_path(saved(tmp_path, x.astype("i8"))).train.x
    np.testing.assert_array_equal(whole, x)
    x[-1, -1] = np.nan
    said = line(f"{saved(tmp_path, x)}:missing=error")
    assert said.startswith("row 1499999 of x.npy has NaN in column 1 (counted from 0)")
    read = load_path(saved(tmp_path, x))
    assert "1 missing cell" in describe(read)
    np.testing.assert_array_equal(read.train.x, x)


def test_constant_columns_are_kept_and_named(tmp_path: Path) -> None:
    x = RNG.normal(size=(10, 3))
    x[:, 1] = 7
    dataset = load_path(saved(tmp_path, x))
    assert dataset.x_shape == (3,)
    assert "3 columns (1 constant column: 1 (counted from 0)); network" in describe(dataset)
    x[9, 1] = 8
    assert "constant" not in describe(load_path(saved(tmp_path, x)))
    x = np.c_[np.ones((10, 6)), x]
    assert "(6 constant columns: 0, 1, 2, 3, 4, … (counted from 0))" in describe(load_path(saved(tmp_path, x)))


def test_a_large_offset_is_not_rounded_away(tmp_path: Path) -> None:
    x = 1.7e9 + RNG.random((50, 2))
    np.testing.assert_array_equal(load_path(saved(tmp_path, x)).train.x, x)


def test_the_channels_axis_can_be_said(tmp_path: Path) -> None:
    images = RNG.integers(0, 256, (6, 8, 9, 3), np.uint8)
    path = saved(tmp_path, images)
    assert "write x.npy:channels=last, or x.npy:channels=first if it is not" in line(path)
    np.savez(tmp_path / "two.npz", images=images, n=np.arange(6))
    said = line(f"{tmp_path}/two.npz:array=images")
    assert said.startswith(
        "array images of two.npz has the shape (6, 8, 9, 3), which looks like (n, height, width, chan"
    )
    assert "write two.npz:channels=last" in said
    last = load_path(f"{path}:channels=last").train.x
    np.testing.assert_array_equal(last[2, 1], images[2, :, :, 1])
    assert load_path(f"{path}:channels=first").x_shape == (8, 9, 3)
    grey = saved(tmp_path, images[..., 0], "grey.npy")
    assert load_path(grey).x_shape == (8, 9)
    assert load_path(f"{grey}:channels=none").x_shape == (1, 8, 9)
    assert load_path(f"{grey}:channels=none").train.x.dtype == np.uint8
    assert "channels=none" in line(f"{path}:channels=none")


def test_standardising_can_be_said(tmp_path: Path) -> None:
    path = saved(tmp_path, RNG.normal(size=(6, 4)))
    assert [load_path(f"{path}:standardize={way}").space.scaling for way in ("none", "columns", "global")] == [
        "none",
        "columns",
        "global",
    ]
    assert "standardize must be" in line(f"{path}:standardize=sometimes")


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.float32(3), "shape ()"),
        (np.zeros(5), "shape (5,)"),
        (np.zeros((2, 2, 2, 2, 2)), "shape (2, 2, 2, 2, 2)"),
        (np.zeros((0, 4)), "has no rows"),
        (np.zeros((1, 4)), "only 1 row"),
        (np.zeros((4, 0)), "its rows are empty"),
        (np.zeros((4, 2), complex), "complex numbers"),
        (np.array([["a", "b"]] * 4), "text"),
        (np.array([["a", None]] * 4, object), "Python objects"),
        (np.zeros(4, [("a", "f4")]), "records"),
        (np.zeros((4, 2), "M8[s]"), "dates or times"),
        (np.array([[1.0, 2.0], [3.0, 1e300]]), "row 1 of x.npy has 1e+300, beyond float32, in column 1"),
        (np.array([[1.0, -np.inf], [3.0, 1]]), "row 0 of x.npy has -inf in column 1"),
        (np.full((2, 1, 3), np.nan), "row 0 of x.npy has NaN at index [0, 0]"),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, array: Any, said: str) -> None:
    assert said in line(saved(tmp_path, array))


def test_a_signalling_nan_is_a_nan(tmp_path: Path) -> None:
    x = np.ones((3, 2))
    x.view(np.uint64)[1, 0] = 0x7FF0_0000_0000_0001
    assert "row 1 of x.npy has NaN in column 0" in line(f"{saved(tmp_path, x)}:missing=error")
    assert np.isnan(load_path(saved(tmp_path, x)).train.x).tolist() == [[False, False], [True, False], [False, False]]


def test_a_single_row_serves_where_nothing_is_learned(tmp_path: Path) -> None:
    assert len(load_path(saved(tmp_path, np.ones((1, 4))), training=False).train) == 1


def test_damaged_npy_files_are_one_line(tmp_path: Path) -> None:
    good = Path(saved(tmp_path, RNG.normal(size=(6, 4)))).read_bytes()
    bad = tmp_path / "bad.npy"
    for length in range(len(good)):
        bad.write_bytes(good[:length])
        assert "bad.npy" in line(str(bad))
    bad.write_bytes(b"PNG\r\n" * 100)
    assert "not an array written by numpy.save" in line(str(bad))
    bad.write_bytes(good.replace(b"(6, 4)", b"(9**9,"))
    assert "header cannot be read" in line(str(bad))
    bad.write_bytes(good.replace(b"(6, 4)", b"(7, 4)"))
    assert "cut short" in line(str(bad))


def test_an_npz_lists_its_arrays_and_takes_labels(tmp_path: Path) -> None:
    images, labels = RNG.random((7, 1, 4, 4)), np.arange(7)
    path = zipped(tmp_path, images=images, labels=labels, ids=np.array(list("abcdefg")))
    assert line(path) == "digits.npz holds 3 arrays (images, labels, ids): choose one, such as digits.npz:array=images"
    dataset = load_path(f"{path}:array=images,labels=labels,ids")
    np.testing.assert_array_equal(dataset.train.x, images)
    np.testing.assert_array_equal(dataset.train.factors["labels"], labels)
    assert "".join(dataset.train.factors["ids"]) == "abcdefg"  # type: ignore[arg-type]
    assert "did you mean 'images'" in line(f"{path}:array=image")
    assert "one for each row" in line(f"{path}:array=images,labels=images")
    assert "shape (7,)" in line(f"{path}:array=labels")


def test_labels_of_an_npy_lie_beside_it(tmp_path: Path) -> None:
    path = saved(tmp_path, RNG.normal(size=(4, 2)))
    saved(tmp_path, np.array([3, 1, 2, 0]), "kinds.npy")
    assert load_path(f"{path}:labels=kinds.npy").train.factors["kinds"].tolist() == [3, 1, 2, 0]
    assert "cannot read" in line(f"{path}:labels=none.npy")
    saved(tmp_path, np.arange(5), "kinds.npy")
    assert "one for each row" in line(f"{path}:labels=kinds.npy")
    assert "leave out array=a" in line(f"{path}:array=a")


def test_an_npz_of_one_array_needs_no_choice(tmp_path: Path) -> None:
    assert load_path(zipped(tmp_path, only=RNG.random((5, 2)))).x_shape == (2,)


def test_damaged_npz_files_are_one_line(tmp_path: Path) -> None:
    path = Path(zipped(tmp_path, x=RNG.random((20, 3))))
    good = path.read_bytes()
    for length in range(0, len(good), 7):
        path.write_bytes(good[:length])
        line(str(path))
    for place in range(30, len(good) - 30, 5):  # a flipped byte is caught, or harms nothing that is read
        path.write_bytes(good[:place] + bytes([good[place] ^ 255]) + good[place + 1 :])
        with contextlib.suppress(WiseAleError):
            load_path(str(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "no arrays here")
    assert "holds no arrays" in line(str(path))


def test_a_header_that_promises_more_than_the_member_holds_takes_no_memory(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 4)})
    with zipfile.ZipFile(tmp_path / "big.npz", "w") as archive:
        archive.writestr("x.npy", stream.getvalue())
    (tmp_path / "big.npy").write_bytes(stream.getvalue())
    assert "cut short" in line(str(tmp_path / "big.npz"))
    assert "cut short" in line(str(tmp_path / "big.npy"))


def test_pickled_arrays_are_never_unpickled(tmp_path: Path) -> None:
    path = zipped(tmp_path, x=np.array([{"a": 1}, {"b": 2}], object))
    assert "Python objects" in line(path)


def test_paths_with_colons_and_settings(tmp_path: Path) -> None:
    x = RNG.normal(size=(4, 2))
    odd = saved(tmp_path, x, "a:b=c.npy")
    assert load_path(odd).name == odd
    spec = f"{odd}:standardize=none"
    assert load_path(spec).name == spec
    assert load_path(spec).space.scaling == "none"
    assert split_path("nowhere/x.csv:columns=a:b=c,d") == (Path("nowhere/x.csv").absolute(), "columns=a:b=c,d")


def test_names_are_absolute_and_load_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, RNG.normal(size=(4, 2)))
    monkeypatch.chdir(tmp_path)
    dataset = load_dataset("x.npy:standardize=none")
    assert dataset.name == f"{tmp_path}/x.npy:standardize=none"
    monkeypatch.chdir("/")
    assert load_dataset(dataset.name).fingerprint == dataset.fingerprint


def test_the_fingerprint_follows_the_content(tmp_path: Path) -> None:
    x = RNG.normal(size=(4, 2)).astype("f4")
    first = load_path(saved(tmp_path, x)).fingerprint
    assert load_path(saved(tmp_path, np.asfortranarray(x), "same.npy")).fingerprint == first
    x[0, 0] += 1
    assert load_path(saved(tmp_path, x)).fingerprint != first


def test_what_is_not_a_known_file_is_one_line(tmp_path: Path) -> None:
    assert "no file" in line(str(tmp_path / "missing.npy"))
    assert "no file" in line(str(tmp_path / "missing.csv:columns=a"))
    (tmp_path / "notes.txt").write_text("hello")
    assert "wiseale reads .npy" in line(str(tmp_path / "notes.txt"))
    (tmp_path / "folder.npy").mkdir()
    assert "holds no images" in line(str(tmp_path / "folder.npy"))
    path = saved(tmp_path, np.zeros((3, 2)))
    assert "is not a setting" in line(f"{path}:arrya=x")
    with pytest.raises(DataError):
        load_dataset(str(tmp_path / "missing.npy"))

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.data.image_samples import resized_by_torch, spoil

from wiseale.config import build
from wiseale.data import load_dataset
from wiseale.errors import DataError

N = 30
SPLIT = [(index * 7) % 3 for index in range(N)]  # the official splits, scattered as no copy has them
ATTRIBUTES = {"Smiling": [index % 2 for index in range(N)], "Young": [index // 20 for index in range(N)]}
TRAIN, TEST = ([index for index in range(N) if SPLIT[index] == part] for part in (0, 2))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def root(tmp_path) -> Path:
    """A data root with a small copy in the official layout; picture k is plain, of colour (8k, 255 − 8k, k)."""
    images = tmp_path / "root" / "celeba" / "img_align_celeba"
    images.mkdir(parents=True)
    for index in range(N):
        Image.new("RGB", (178, 218), (8 * index, 255 - 8 * index, index)).save(images / name(index), quality=95)
    return tmp_path / "root"


def name(index: int) -> str:
    return f"{index + 1:06d}.jpg"


def with_tables(root: Path, folder: str = "celeba") -> Path:
    place = root / folder
    place.mkdir(exist_ok=True)
    (place / "list_eval_partition.txt").write_text("".join(f"{name(i)} {SPLIT[i]}\n" for i in range(N)))
    marks = [" ".join(f"{2 * values[i] - 1:2d}" for values in ATTRIBUTES.values()) for i in range(N)]
    lines = [str(N), " ".join(ATTRIBUTES) + " ", *(f"{name(i)} {marks[i]}" for i in range(N))]
    (place / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    return root


def pictures(x: np.ndarray) -> list[int]:
    """Which picture each row is, by its red."""
    return np.rint(np.array(x)[:, 0].mean((1, 2)) / 8).astype(int).tolist()


def load(root: Path, spec: str = "celeba"):
    return load_dataset(spec, root)


def check_official(dataset) -> None:
    assert pictures(dataset.train.x) == TRAIN
    assert pictures(dataset.test.x) == TEST
    for attribute, values in ATTRIBUTES.items():
        assert dataset.train.factors[attribute].tolist() == [values[index] for index in TRAIN]
        assert dataset.test.factors[attribute].tolist() == [values[index] for index in TEST]
    assert set(dataset.train.factors) == set(ATTRIBUTES)


def test_the_official_splits_and_attributes(root):
    dataset = load(with_tables(root))
    check_official(dataset)
    assert dataset.name == "celeba"
    assert dataset.x_shape == (3, 64, 64)
    assert (dataset.train.reading, dataset.space.scaling) == ("unit", "none")
    assert isinstance(dataset.train.x, np.memmap)  # a slice of the pack, not a copy
    preset = dataset.preset
    assert (preset.network, preset.likelihood, preset.latent_dim, preset.lr) == ("paper_celeba", "gaussian", 64, 3e-4)
    assert (preset.batch_size, preset.max_epochs) == (len(TRAIN), 50)
    assert preset.lr_schedule == "step:epochs=30,factor=0.5"


def zip_images(root: Path) -> None:
    images = root / "celeba" / "img_align_celeba"
    with zipfile.ZipFile(root / "celeba" / "img_align_celeba.zip", "w") as archive:
        for path in images.iterdir():
            archive.write(path, f"img_align_celeba/{path.name}")
    shutil.rmtree(images)


def nest(root: Path) -> None:
    (root / "celeba").rename(root / "inner")
    (root / "celeba").mkdir()
    (root / "inner").rename(root / "celeba" / "inner")


def double(root: Path) -> None:
    """As the archive on Kaggle unpacks."""
    images = root / "celeba" / "img_align_celeba"
    images.rename(root / "celeba" / "x")
    images.mkdir()
    (root / "celeba" / "x").rename(images / "img_align_celeba")


def comma_separated(root: Path) -> None:
    """The tables as Kaggle has them."""
    for table in sorted((root / "celeba").glob("*.txt")):
        header, *lines = table.read_text().splitlines()
        if "attr" in table.name:
            header = ",".join(["image_id", *ATTRIBUTES])
            lines = lines[1:]
        else:
            lines = [header, *lines]
            header = "image_id,partition"
        rows = [",".join(line.split()) for line in lines]
        table.with_suffix(".csv").write_text("\n".join([header, *rows]) + "\n")
        table.unlink()


@pytest.mark.parametrize("change", [zip_images, nest, double, comma_separated])
def test_copies_come_in_several_layouts(root, change):
    with_tables(root)
    change(root)
    check_official(load(root))


def test_tables_may_lie_one_folder_deeper(root):
    with_tables(root, "celeba/Anno")
    check_official(load(root))


def test_without_tables_the_last_tenth_is_the_test_split(root):
    dataset = load(root)
    assert pictures(dataset.train.x) == list(range(27))
    assert pictures(dataset.test.x) == [27, 28, 29]
    assert dataset.train.factors == {}


def test_a_second_load_decodes_nothing_and_new_tables_are_noticed(root):
    first = load(with_tables(root))
    for path in (root / "celeba" / "img_align_celeba").iterdir():
        spoil(path)
    again = load(root)
    assert again.fingerprint == first.fingerprint
    check_official(again)
    (root / "celeba" / "list_attr_celeba.txt").unlink()
    with pytest.raises(DataError, match="30 of 30 images"):  # so it did decode now
        load(root)


def test_splits_stay_right_when_images_are_left_out(root):
    for index in (TRAIN[0], TRAIN[4], TEST[1]):
        (root / "celeba" / "img_align_celeba" / name(index)).write_bytes(b"broken")
    with pytest.raises(DataError, match=r"^3 of 30 images"):
        load(with_tables(root))
    dataset = load(root, "celeba:skip_bad=true")
    assert pictures(dataset.train.x) == [index for index in TRAIN if index not in (TRAIN[0], TRAIN[4])]
    assert pictures(dataset.test.x) == [index for index in TEST if index != TEST[1]]
    assert dataset.test.factors["Young"].tolist() == [ATTRIBUTES["Young"][i] for i in TEST if i != TEST[1]]


def test_no_copy_is_one_line_with_the_licence_and_what_to_do(tmp_path):
    for data_root in (tmp_path, tmp_path / "gone"):
        with pytest.raises(DataError) as caught:
            load(data_root)
        message = str(caught.value)
        assert "\n" not in message
        assert f"no CelebA in {data_root / 'celeba'}: its licence" in message
        assert "img_align_celeba.zip" in message
        assert "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html" in message


@pytest.mark.parametrize(
    ("table", "change", "message"),
    [
        (
            "list_eval_partition.txt",
            lambda text: text.replace("000003.jpg 2", "000003.jpg 3"),
            "line 3: expected an image",
        ),
        ("list_eval_partition.txt", lambda text: text[: text.index("000029")], "has no line for 000029.jpg and 1 more"),
        ("list_eval_partition.txt", lambda text: "\udcff", "list_eval_partition.txt: not UTF-8 text"),
        (
            "list_attr_celeba.txt",
            lambda text: text.replace("000004.jpg", "000004.jpg 1"),
            "line 6: expected an image name and 2",
        ),
        ("list_attr_celeba.txt", lambda text: text.replace("000004.jpg  1", "000004.jpg  7"), "line 6: expected"),
        ("list_attr_celeba.txt", lambda text: text[: text.index("000030")], "has no line for 000030.jpg: get"),
        ("list_attr_celeba.txt", lambda text: "", "has no line for 000"),
    ],
)
def test_tables_that_do_not_fit_are_one_line(root, table, change, message):
    path = with_tables(root) / "celeba" / table
    path.write_text(change(path.read_text()), errors="surrogateescape")
    with pytest.raises(DataError) as caught:
        load(root)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_sizes_get_another_network_and_a_full_name(root):
    dataset = load(root, "celeba:size=32,channels=1")
    assert dataset.x_shape == (1, 32, 32)
    assert dataset.preset.network == "conv2d:start=none"
    assert build("dataset", dataset.name) == build("dataset", "celeba:size=32,channels=1")


def test_portraits_take_the_same_path():
    data = os.environ.get("WISEALE_DATA")
    if not data or not (Path(data) / "portraits").is_dir():
        pytest.skip("$WISEALE_DATA with portraits/ is not set")
    dataset = load(Path(data), "celeba:folder=portraits")
    assert dataset.train.x.shape == (805, 3, 64, 64)
    assert dataset.test.x.shape == (89, 3, 64, 64)
    files = sorted((Path(data) / "portraits").glob("*.jpg"))
    for row in range(0, 805, 100):
        pixels = np.asarray(Image.open(files[row]).convert("RGB"))
        top, left = (pixels.shape[0] - 178) // 2, (pixels.shape[1] - 178) // 2
        expected = resized_by_torch(pixels[top : top + 178, left : left + 178], 64)
        assert np.abs(dataset.train.x[row].transpose(1, 2, 0) - expected).max() <= 1

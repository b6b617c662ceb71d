from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.data.image_samples import folder_of, photograph, spoil

from wiseale.data.images.folder import load_images
from wiseale.data.source import open_rows
from wiseale.errors import ConfigError, DataError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_folder_is_a_dataset(tmp_path):
    folder = folder_of(tmp_path / "my images", 70, width=64, height=64)
    dataset = load_images(folder, {})
    assert dataset.name == str(folder)
    assert (dataset.train.x.shape, dataset.train.x.dtype, dataset.train.reading) == ((70, 3, 64, 64), np.uint8, "unit")
    assert dataset.test is None
    assert (dataset.preset.network, dataset.preset.likelihood) == ("mlp", "gaussian:x_sigma=learned")
    assert dataset.space.scaling == "global"
    assert dataset.preset.batch_size == 64
    rows = dataset.train.take(np.array([69, 3]))
    np.testing.assert_array_equal(rows.x[0].transpose(1, 2, 0), photograph(69, 64, 64))
    np.testing.assert_array_equal(rows.x[1].transpose(1, 2, 0), photograph(3, 64, 64))


def test_settings_are_read_from_text(tmp_path):
    folder = folder_of(tmp_path / "images", 3)
    dataset = load_images(folder, {"crop": "60", "size": "32", "channels": "1"})
    assert dataset.train.x.shape == (3, 1, 32, 32)
    assert dataset.name == f"{folder}:crop=60,size=32,channels=1"
    assert dataset.preset.batch_size == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sise": "64"}, "sise is not a setting of ImageFolder: did you mean 'size'?"),
        ({"size": "0"}, "size must be at least 1, got 0"),
        ({"channels": "2"}, "channels must be 1 or 3, got 2"),
        ({"channels": "4"}, "channels must be below 4, got 4"),
        ({"crop": "wide"}, "crop must be a whole number or none, got 'wide'"),
        ({"skip_bad": "yes"}, "skip_bad must be true or false, got 'yes'"),
    ],
)
def test_wrong_settings_are_one_line(tmp_path, settings, message):
    with pytest.raises(ConfigError) as caught:
        load_images(folder_of(tmp_path / "images", 1), settings)
    assert message in str(caught.value)


def test_a_second_load_decodes_nothing_and_a_changed_folder_is_packed_anew(tmp_path, cache):
    folder = folder_of(tmp_path / "images", 4)
    first = load_images(folder, {})
    for path in folder.iterdir():
        spoil(path)
    again = load_images(folder, {})
    assert again.fingerprint == first.fingerprint
    np.testing.assert_array_equal(again.train.x, first.train.x)
    folder_of(folder, 5)
    assert load_images(folder, {}).train.x.shape[0] == 5
    assert len([name for name in os.listdir(cache / "packs") if "." not in name]) == 1  # the old pack is gone


def test_sub_folders_become_labels_also_where_images_are_left_out(tmp_path):
    folder_of(tmp_path / "images" / "dog", 2)
    folder_of(tmp_path / "images" / "cat", 3)
    Image.new("RGB", (5, 5)).save(tmp_path / "images" / "cat" / "001.png")
    dataset = load_images(tmp_path / "images", {"skip_bad": "true"})
    assert dataset.train.factors["label"].tolist() == ["cat", "cat", "dog", "dog"]
    assert dataset.train.x.shape[0] == 4


def table(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    return {"labels": str(path)}


def test_a_table_gives_factors(tmp_path):
    folder = folder_of(tmp_path / "images" / "deep", 3).parent
    lines = [
        '\ufefffile,age,height,"kind, of"',
        "002.png,7,1.5,x",
        'deep/000.png,9,2,"y, z"',
        "",
        "001.png,-8,1e2,w",
        "b.png,1,1,v",
    ]
    factors = load_images(folder, table(tmp_path / "labels.csv", "\n".join(lines))).train.factors
    assert {name: values.tolist() for name, values in factors.items()} == {
        "age": [9, -8, 7],
        "height": [2.0, 100.0, 1.5],
        "kind, of": ["y, z", "w", "x"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,a\n000.png,1\n", "has no row for 001.png and 1 more: add it"),
        ("file,a\n000.png,1\n001.png,1,5\n002.png,1\n", "row 3 has 3 columns, the header has 2"),
        ("", "not a CSV file in UTF-8 with a header"),
    ],
)
def test_tables_that_do_not_fit_are_one_line(tmp_path, text, message):
    with pytest.raises(DataError) as caught:
        load_images(folder_of(tmp_path / "images", 3), table(tmp_path / "labels.csv", text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_table_and_a_single_image_are_one_line(tmp_path):
    with pytest.raises(DataError, match=r"cannot read the labels .*gone.csv: No such file"):
        load_images(folder_of(tmp_path / "images", 3), {"labels": str(tmp_path / "gone.csv")})
    with pytest.raises(DataError, match="holds 1 usable image: at least 2 are needed"):
        load_images(folder_of(tmp_path / "one", 1), {})
    (block,) = open_rows(str(tmp_path / "one")).blocks()  # to be embedded, one is enough
    assert block.shape == (1, 3, 64, 64)

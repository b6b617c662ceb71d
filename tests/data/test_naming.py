"""A folder named like a dataset: whose words mean which."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.commands import run

from wiseale.data import is_path, load_dataset
from wiseale.data.source import named_data


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder called sine in the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sine").mkdir()
    return tmp_path / "sine"


def _put_images(folder):
    folder.mkdir(exist_ok=True)
    for number in range(3):
        Image.fromarray(np.full((64, 64, 3), 40 * number, np.uint8)).save(folder / f"{number}.png")


@pytest.mark.parametrize("spec", ["sine", "sine:n=8"])
def test_recorded_names_are_never_looked_up_on_disk(folder, spec):
    _put_images(folder)
    assert not is_path(spec)
    assert load_dataset("sine:n=8,n_test=2").train.x.shape == (8, 1, 256)


def test_a_folder_without_images_does_not_hide_a_dataset(folder):
    assert named_data("sine").spec == "sine"


def test_figures_of_results_are_not_data(folder):
    _put_images(folder / "figures")
    (folder / "reproduction.json").write_text("{}")
    assert named_data("sine").spec == "sine"


def test_a_folder_of_images_is_what_exists_and_the_note_names_both(folder):
    _put_images(folder)
    named = named_data("sine")
    assert named.spec == str(folder)
    assert named.note is not None
    assert "`sine:`" in named.note
    assert "./sine" in named.note
    assert load_dataset(named.spec).x_shape == (3, 64, 64)
    for word in ("sine:", "sine:n=8", "./sine"):  # each says for itself what it is
        assert named_data(word).note is None
        assert named_data(word).spec == word


def test_the_command_line_says_which_it_took(folder, capsys):
    _put_images(folder)
    _, out, err = run(capsys, "data", "info", "sine", "-o", folder.parent / "x.png")
    assert "64" in out
    assert err.count("\n") == 1
    assert run(capsys, "data", "info", "sine:n=30,n_test=2", "-o", folder.parent / "x.png")[2] == ""


def test_a_picture_of_the_data_is_drawn_only_where_it_is_asked_for(tmp_path, capsys, monkeypatch):
    """A file called after the data may be the user's own."""
    monkeypatch.chdir(tmp_path)
    np.savetxt("sales.csv", np.arange(60.0).reshape(20, 3) ** 2, delimiter=",", header="a,b,c", comments="")
    Path("sales.png").write_text("mine")
    run(capsys, "data", "info", "sales.csv")
    assert Path("sales.png").read_text() == "mine"
    assert "picture: drawn.png" in run(capsys, "data", "info", "sales.csv", "-o", "drawn.png")[1]
    assert Path("drawn.png").stat().st_size > 1000

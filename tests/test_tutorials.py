"""The tutorials run from top to bottom and find what their text says."""

import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"


def run(name, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(TUTORIALS / name))
    return capsys.readouterr().out


def test_none_is_forgotten():
    assert {path.name for path in TUTORIALS.glob("*.py")} == {"mixed_tables.py", "signals.py", "tabular.py"}


def test_tabular(capsys, monkeypatch, tmp_path):
    shown = run("tabular.py", capsys, monkeypatch, tmp_path)
    assert "refused: Input X contains NaN." in shown
    errors = {name: re.search(rf"{name}: error of a hidden cell ([\d.]+)", shown)[1] for name in ("imputed", "median")}
    imputed, median = float(errors["imputed"]), float(errors["median"])
    assert imputed < 0.7 * median
    ours, pca = map(float, re.search(r"2 codes: ([\d.]+); from 2 principal components: ([\d.]+)", shown).groups())
    assert ours > pca - 0.03
    areas = re.search(r"reconstruction error: ([\d.]+), by ELBO: ([\d.]+)", shown).groups()
    assert min(map(float, areas)) > 0.85
    assert (tmp_path / "tumours-model" / "model.safetensors").exists()


def test_mixed_tables(capsys, monkeypatch, tmp_path):
    shown = run("mixed_tables.py", capsys, monkeypatch, tmp_path)
    for said in ("5 numbers (Miles_per_Gallon", "2 categories (Cylinders: 5 levels", "Year (dates); 14 missing cells"):
        assert said in shown
    for name in ("Horsepower", "Weight_in_lbs"):
        error, mean = map(float, re.search(rf"{name}: hidden cells are off by ([\d.]+).*by ([\d.]+)", shown).groups())
        assert error < 0.5 * mean
    right, frequent = map(int, re.search(r"Origin: (\d+)% of hidden cells right.* (\d+)%", shown).groups())
    assert right > frequent
    assert "strangest cell: row 100, Weight_in_lbs = 423 (plymouth fury gran sedan)" in shown
    data, samples = map(float, re.search(r"power and range: data (\S+), samples (\S+)", shown).groups())
    assert abs(data - samples) < 0.15
    assert "refused: row 1 of X (counted from 1) has 'Sweden' in column \"Origin\"" in shown
    assert (tmp_path / "cars-model" / "model.safetensors").exists()


def test_signals(capsys, monkeypatch, tmp_path):
    shown = run("signals.py", capsys, monkeypatch, tmp_path)
    explained = re.search(r"centre ([\d.]+), width ([\d.]+)", shown).groups()
    assert min(map(float, explained)) > 0.9
    assert int(re.search(r"(\d+)% of 200", shown)[1]) > 60
    picture = plt.imread(tmp_path / "latent_map.png")[..., :3]
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 100  # points coloured by a continuous factor


@pytest.mark.parametrize("name", ["mixed_tables.py", "signals.py", "tabular.py"])
def test_prose_stands_in_cells(name):
    """Every code cell begins with a comment that says what happens, so that the docs can render it as text."""
    cells = (TUTORIALS / name).read_text().split("# %%\n")[1:]
    assert len(cells) >= 5
    assert all(cell.startswith("# ") for cell in cells)

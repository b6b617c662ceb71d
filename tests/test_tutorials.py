"""The tutorials run from top to bottom and find what their text says."""

import json
import re
import runpy
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_digits

from wiseale import registry

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"
NAMES = sorted(path.name for path in TUTORIALS.glob("*.py"))


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a tutorial in an empty folder; what it prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr(registry, "REGISTRIES", {kind: dict(known) for kind, known in registry.REGISTRIES.items()})

    def shown(name):
        runpy.run_path(str(TUTORIALS / name))
        return capsys.readouterr().out

    yield shown
    plt.close("all")


def numbers(pattern, text):
    """The groups of a pattern's first match as numbers."""
    found = re.search(pattern, text)
    assert found, text
    return tuple(map(float, found.groups()))


def colours_of(figure):
    """How many colours a drawn figure has."""
    figure.canvas.draw()
    return len(np.unique(np.asarray(figure.canvas.buffer_rgba()).reshape(-1, 4), axis=0))


def test_tabular(run, tmp_path):
    shown = run("tabular.py")
    assert 'refused: row 1 of X (counted from 1) has a missing cell in column "area error"' in shown
    (imputed,), (median,) = (
        numbers(rf"{name}: error of a hidden cell ([\d.]+)", shown) for name in ("imputed", "median")
    )
    assert imputed < 0.7 * median
    ours, pca = (
        numbers(r"AutoEncoder: mean squared error of unseen rows ([\d.]+)", shown),
        numbers(r"PCA: .* ([\d.]+)", shown),
    )
    assert ours < pca
    assert (tmp_path / "tumours-model" / "model.safetensors").exists()


def test_mixed_tables(run, tmp_path):
    shown = run("mixed_tables.py")
    for said in (
        "5 numbers (Miles_per_Gallon",
        "2 categories (Cylinders: 5 levels",
        "Year (as you said); 14 missing cells",
    ):
        assert said in shown
    for name in ("Horsepower", "Weight_in_lbs"):
        error, mean = numbers(rf"{name}: hidden cells are off by ([\d.]+).*by ([\d.]+)", shown)
        assert error < 0.5 * mean
    right, frequent = numbers(r"Origin: (\d+)% of hidden cells right.* (\d+)%", shown)
    assert right > frequent
    assert "strangest cell: row 100, Weight_in_lbs = 423 (plymouth fury gran sedan)" in shown
    data, samples = numbers(r"power and range: data (\S+), samples (\S+)", shown)
    assert abs(data - samples) < 0.15
    assert "refused: row 1 of X (counted from 1) has 'Sweden' in column \"Origin\"" in shown
    assert (tmp_path / "cars-model" / "model.safetensors").exists()


def test_anomalies(run):
    assert min(numbers(r"reconstruction error: ([\d.]+), by ELBO: ([\d.]+)", run("anomalies.py"))) > 0.85


def test_grid_search(run):
    shown = run("grid_search.py")
    elbos = [numbers(rf"latent_dim {size}: ELBO (\S+)", shown)[0] for size in (1, 2, 4, 8)]
    assert numbers(r"chosen by ELBO: \{'latent_dim': (\d+)", shown)[0] == (1, 2, 4, 8)[elbos.index(max(elbos))]
    assert numbers(r"digits recognised: ([\d.]+)", shown)[0] > 0.8


def test_signals(run):
    shown = run("signals.py")
    assert min(numbers(r"centre ([\d.]+), width ([\d.]+)", shown)) > 0.9
    assert numbers(r"(\d+)% of 200", shown)[0] > 60
    assert colours_of(plt.figure(plt.get_fignums()[-1])) > 100  # points coloured by a continuous factor


def test_images(run):
    (two,), (eight,) = (
        numbers(rf"{n} codes: .* digits ([\d.]+)", shown) for shown in [run("images.py")] for n in (2, 8)
    )
    assert eight < 0.5 * two < 0.5


def test_compare(run):
    rows = re.findall(r"^(\S.*?)\s+error ([\d.]+)  width ([\d.]+)  mean KL ([\d.]+)", run("compare.py"), re.M)
    widths, kls = ([float(row[column]) for row in rows] for column in (2, 3))
    assert len(rows) == 4
    assert widths == sorted(widths)  # from left to right posteriors widen
    assert kls == sorted(kls, reverse=True)
    assert kls[-1] < 0.1  # beta = 4 has collapsed


def test_objective(run):
    shown = run("objective.py")
    aevb, aevb_error = numbers(r"AEVB: (\d) of 6 units in use, error ([\d.]+)", shown)
    free, free_error = numbers(r"free bits.*: (\d) of 6 units in use, error ([\d.]+)", shown)
    assert (aevb, free) == (0, 6)
    assert free_error < 0.6 * aevb_error


def test_own_loop(run):
    shown = run("own_loop.py")
    aevb, aevb_width = numbers(r"AEVB: reconstruction ([\d.]+) nats, mean width ([\d.]+)", shown)
    ours, our_width = numbers(r"WiSE-ALE: reconstruction ([\d.]+) nats, mean width ([\d.]+)", shown)
    assert ours < aevb
    assert our_width < aevb_width


def test_reproduce(run):
    """The values of the paper's Figure 4, known in closed form for AEVB and by quadrature for the bound."""
    shown = run("reproduce.py")
    assert numbers(r"AEVB is smallest at sigma = ([\d.]+): ([\d.]+)", shown) == (1.0, 0.5)
    assert numbers(r"bound is smallest at sigma = ([\d.]+): ([\d.]+)", shown) == (0.72, 0.184)


@pytest.mark.long
def test_machines(run):
    assert numbers(r"largest difference between the codes: (\S+)", run("machines.py"))[0] < 1e-4


def test_explore(run, tmp_path):
    run("explore.py")
    page = (tmp_path / "digits.html").read_text()
    embedded = json.loads(re.search(r'id="embedded">(.*?)</script>', page)[1])
    assert embedded["manifest"]["n"] == len(load_digits().data)
    assert embedded["manifest"]["colourings"][0]["name"] == "digit"
    assert not re.search(r"(src|href)=[\"']https?:", page)


@pytest.mark.parametrize("name", NAMES)
def test_shape_of_a_tutorial(name):
    """The gallery needs a title, text before every code cell, and a test here that runs it."""
    source = (TUTORIALS / name).read_text(encoding="utf-8")
    title, rule = source.removeprefix('"""').strip().splitlines()[:2]
    assert set(rule) == {"="}
    assert len(rule) >= len(title)
    cells = source.split("# %%\n")[1:]
    assert len(cells) >= 4
    assert all(cell.startswith("# ") for cell in cells)
    assert f'"{name}"' in Path(__file__).read_text(encoding="utf-8")

"""The report's ranking of strange cells finds entries that were changed on purpose."""

import csv

import numpy as np
from tests.cli.commands import run

from wiseale.evaluation.evaluate import evaluate
from wiseale.report.run import MOST_CELLS, run_document, strange_cells
from wiseale.runs.run import Run

N = 120


def write(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def test_a_wrong_label_and_a_wrong_number_are_found(tmp_path, capsys, monkeypatch):
    draws = np.random.default_rng(0)
    u = draws.normal(size=N)
    rows = [[f"{u[i] + 0.05 * draws.normal():.3f}", f"{3 * u[i]:.3f}", "high" if u[i] > 0 else "low"] for i in range(N)]
    rows[17][2] = "low" if u[17] > 0 else "high"
    rows[60][1] = f"{3 * u[60] + 9:.3f}"
    rows[5][0] = ""
    write(tmp_path / "x.csv", ["a", "b", "level"], rows)
    settings = ("--max-epochs", 60, "--network", "mlp:hidden=16", "--latent-dim", 1, "--threads", 1, "--lr", 0.003)
    settings = (*settings, "--no-figures")
    code, _, errors = run(capsys, "train", tmp_path / "x.csv", *settings, "--out", tmp_path / "run")
    assert code == 0, errors
    (table,) = strange_cells(Run.open(tmp_path / "run"))
    assert len(table.rows) == MOST_CELLS
    found = [(int(row[0]), row[1]) for row in table.rows]
    assert (18, "level") in found[:4]  # rows are counted from 1
    assert {(61, "b"), (61, "a")} & set(found[:4])
    wrong = next(row for row in table.rows if row[:2] == ("18", "level"))
    assert wrong[2:4] == (("low", "high") if u[17] > 0 else ("high", "low"))
    assert "a " in wrong[5]
    assert "b " in wrong[5]
    nats = [float(row[4]) for row in table.rows]
    assert nats == sorted(nats, reverse=True)
    evaluate(tmp_path / "run", nll_samples=0)
    monkeypatch.setattr("wiseale.report.run.draw_all", lambda *given: [])
    sections = {section.title: section for section in run_document(tmp_path / "run").sections}
    assert list(sections)[:4] == ["In short", "Columns", "Pictures", "Strange cells"]
    (quality,) = sections["Columns"].blocks
    assert {row[:2] for row in quality.rows} == {("a", "RMSE"), ("b", "RMSE"), ("level", "accuracy")}
    assert all(float(row[2]) < float(row[3].split()[0]) for row in quality.rows[:2])
    assert quality.rows[2][3].endswith("(the most frequent level)")


def test_missing_and_perfectly_likely_cells_are_not_strange(tmp_path, capsys):
    """A table with fewer cells than the ranking has places, half of them missing."""
    write(tmp_path / "x.csv", ["a", "level"], [["" if i % 2 else f"{i}.5", "low" if i else "high"] for i in range(9)])
    settings = ("--max-epochs", 40, "--network", "mlp:hidden=8", "--latent-dim", 1, "--threads", 1, "--no-figures")
    code, _, errors = run(capsys, "train", tmp_path / "x.csv", *settings, "--held-out", 0, "--out", tmp_path / "run")
    assert code == 0, errors
    (table,) = strange_cells(Run.open(tmp_path / "run"))
    assert 0 < len(table.rows) < 18
    assert all(row[2] != "missing" for row in table.rows)
    columns = [row[1] for row in table.rows]
    assert columns.count("a") == 5
    assert columns.count("level") < 9  # the likeliest level is what was expected


def test_rows_that_are_no_table_have_none(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(40, 1, 16)))
    settings = ("--max-epochs", 1, "--network", "mlp:hidden=8", "--threads", 1, "--no-figures")
    assert run(capsys, "train", tmp_path / "x.npy", *settings, "--out", tmp_path / "run")[0] == 0
    assert strange_cells(Run.open(tmp_path / "run")) == ()

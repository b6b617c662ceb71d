"""Tables with words and missing cells through the commands, block by block."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from tests.cli.commands import run

from wiseale.data.source import load_path, read_alike

RNG = np.random.default_rng(8)
COLOURS = ["red", "green, dark", "blue"]


def write(path: Path, n: int = 60) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "price", "colour", "visits"])
        for i in range(n):
            k = i % 3
            price = "" if i % 10 == 4 else f"{k + RNG.normal() / 9:.2f}"
            writer.writerow([f"row {i}", price, "" if i % 10 == 7 else COLOURS[k], i % 4])
    return path


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from click.testing import CliRunner

    from wiseale.cli import group

    folder = tmp_path_factory.mktemp("tables")
    write(folder / "x.csv")
    command = ["train", f"{folder}/x.csv", "--columns", "visits:number", "--max-epochs", "3", "--threads", "1"]
    done = CliRunner().invoke(group, [*command, "--network", "mlp:hidden=16", "--out", f"{folder}/run"])
    assert done.exit_code == 0, done.output
    return folder


def test_impute_fills_the_holes_and_copies_the_rest(trained, tmp_path, capsys):
    code, said, errors = run(capsys, "impute", trained / "run", trained / "x.csv", "-o", tmp_path / "filled.csv")
    assert code == 0, errors
    assert "12 missing cells filled" in said
    before, after = rows(trained / "x.csv"), rows(tmp_path / "filled.csv")
    assert len(before) == len(after) == 60
    for old, new in zip(before, after, strict=True):
        assert list(old) == list(new)
        assert {name: new[name] for name in old if old[name]} == {name: cell for name, cell in old.items() if cell}
        assert all(new.values())
        assert new["colour"] in COLOURS


@pytest.mark.parametrize(("header", "separator"), [(True, ";"), (False, ";"), (True, "\t"), (True, "|"), (True, ",")])
def test_an_imputed_table_is_written_like_the_one_it_fills(tmp_path, capsys, header, separator):
    """Separator, decimal mark and header; the result is read with the same settings."""
    lines = [["", "mass", "size"]] if header else []
    for i in range(40):
        cells = [
            str(i) if header else f"{i * i},5",
            f"{i % 3},25" if i % 5 != 2 else "NA",
            f"{i % 7},75" if i % 6 != 3 else "",
        ]
        lines.append([f'"{cell}"' if separator in cell else cell for cell in cells])
    path, filled = tmp_path / "x.csv", tmp_path / "filled.csv"
    path.write_text("".join(separator.join(line) + "\n" for line in lines))
    spec = f"{path}:decimal=comma" + (",separator=comma" if separator == "," else "")
    options = ("--max-epochs", 1, "--network", "mlp:hidden=8", "--threads", 1, "--no-figures")
    code, _, errors = run(capsys, "train", spec, *options, "--out", tmp_path / "run")
    assert code == 0, errors
    code, said, errors = run(capsys, "impute", tmp_path / "run", spec, "-o", filled)
    assert (code, "15 missing cells filled" in said) == (0, True), errors
    before, after = (list(csv.reader(text.read_text().splitlines(), delimiter=separator)) for text in (path, filled))
    assert len(before) == len(after) == 40 + header
    for old, new in zip(before, after, strict=True):
        assert all(b == a for b, a in zip(old, new, strict=True) if b not in ("", "NA"))
        assert not any("." in cell for cell in new)
    again = load_path(spec.replace("x.csv", "filled.csv"))
    assert not np.isnan(again.train.x).any()
    assert again.x_shape == (3 - header,)


def test_samples_and_decoded_rows_are_tables_in_the_users_terms(trained, tmp_path, capsys):
    codes = tmp_path / "codes.parquet"
    assert run(capsys, "embed", trained / "run", trained / "x.csv", "-o", codes, "--error")[0] == 0
    assert parquet.read_table(codes).column_names[-1] == "error"
    assert run(capsys, "decode", trained / "run", codes, "-o", tmp_path / "x.csv")[0] == 0
    assert {row["colour"] for row in rows(tmp_path / "x.csv")} <= set(COLOURS)
    assert run(capsys, "sample", trained / "run", "-n", 9, "-o", tmp_path / "new.parquet", "--noise")[0] == 0
    new = parquet.read_table(tmp_path / "new.parquet")
    assert new.column_names == ["price", "colour", "visits"]
    assert all(isinstance(value, int) for value in new["visits"].to_pylist())


def test_levels_and_formats_that_do_not_fit_are_one_line(trained, tmp_path, capsys):
    text = (trained / "x.csv").read_text().replace("red", "purple")
    (tmp_path / "other.csv").write_text(text)
    embed = ("embed", trained / "run", tmp_path / "other.csv", "-o", tmp_path / "codes.csv")
    code, _, errors = run(capsys, *embed)
    assert code == 2
    assert "row 1 of other.csv (line 2) has 'purple' in column \"colour\", which training did not see" in errors
    assert run(capsys, *embed, "--unseen", "missing")[0] == 0
    code, _, errors = run(capsys, "impute", trained / "run", trained / "x.csv", "-o", tmp_path / "x.npy")
    assert (code, "use .csv or .parquet" in errors) == (2, True)


def test_further_files_are_read_as_the_runs_own_was(tmp_path, capsys):
    def written(name, mark=","):
        rows = [(f"{i % 3}.25", f"{RNG.normal():.2f}", f"{RNG.normal():.2f}") for i in range(30)]
        text = "\n".join(["a;b;c", *(";".join(row) for row in rows)]) + "\n"
        (tmp_path / name).write_text(text.replace(".", mark))
        return tmp_path / name

    options = ("--max-epochs", 1, "--network", "mlp:hidden=8", "--threads", 1, "--no-figures")
    train = written("x.csv")
    assert run(capsys, "train", f"{train}:decimal=comma", *options, "--out", tmp_path / "run")[0] == 0
    other, points = written("other.csv"), written("points.csv", ".")
    for spec in (other, f"{points}:decimal=point"):
        code, _, errors = run(capsys, "embed", tmp_path / "run", spec, "-o", tmp_path / "codes.npy")
        assert code == 0, errors
        code, _, errors = run(capsys, "impute", tmp_path / "run", spec, "-o", tmp_path / "filled.csv")
        assert code == 0, errors
        code, _, errors = run(capsys, "evaluate", tmp_path / "run", "--data", spec)
        assert code == 0, errors
        assert run(capsys, "explore", tmp_path / "run", "--data", spec, "--html", tmp_path / "page.html")[0] == 0
    code, _, errors = run(capsys, "embed", tmp_path / "run", f"{tmp_path}/o*.csv", "-o", tmp_path / "codes")
    assert (code, len(np.load(tmp_path / "codes" / "other.npy"))) == (0, 30), errors
    code, _, errors = run(capsys, "embed", tmp_path / "run", points, "-o", tmp_path / "codes.npy")
    assert (code, "write points.csv:decimal=point if that is a number" in errors) == (2, True)
    code, _, errors = run(capsys, "embed", tmp_path / "run" / "model", other, "-o", tmp_path / "codes.npy")
    assert (code, "write other.csv:decimal=comma if that is a number" in errors) == (2, True)


def test_reading_alike_keeps_what_is_said():
    before = "/data/x.csv:decimal=comma,header=false,columns=a,b,kinds=c:label"
    assert read_alike("y.csv", before) == "y.csv:decimal=comma,header=false"
    assert read_alike("y.csv:decimal=point", before) == "y.csv:decimal=point,header=false"
    assert read_alike("s/*.csv:labels=d", before) == "s/*.csv:labels=d,decimal=comma,header=false"
    assert read_alike("y.tsv", before) == "y.tsv"
    assert read_alike("sine:n=20", before) == "sine:n=20"
    assert read_alike("y.csv", "sine:n=20") == read_alike("y.csv", "") == "y.csv"
    assert read_alike("y.npy", "x.npy:channels=last") == "y.npy:channels=last"


def test_evaluate_takes_the_columns_of_the_model_from_other_tables(tmp_path, capsys):
    def written(name, n, first):
        rows = [f"{first + i},{RNG.normal():.3f},{RNG.normal():.3f},x" for i in range(n)]
        (tmp_path / name).write_text("\n".join(["id,a,b,note", *rows]) + "\n")
        return tmp_path / name

    options = ("--max-epochs", 1, "--network", "mlp:hidden=8", "--threads", 1, "--no-figures")
    train = written("x.csv", 40, 1)
    code, said, errors = run(capsys, "train", train, "--columns", "note:ignore", *options, "--out", tmp_path / "run")
    assert code == 0, errors
    assert "columns: 2 numbers (a, b); ignored: id (row numbers); note (as you said); to colour" in said
    few = written("few.csv", 5, 300)
    code, said, errors = run(capsys, "evaluate", tmp_path / "run", "--data", few)
    assert (code, "5 rows" in said) == (0, True), errors
    assert run(capsys, "evaluate", tmp_path / "run", "--data", f"{train}:kinds=note:ignore")[0] == 0
    few.write_text(few.read_text().replace(",x", ",x", 1).replace("300,", "300,one", 1))
    code, said, errors = run(capsys, "evaluate", tmp_path / "run", "--data", few)
    assert (code, "few.csv" in errors and "\n" not in errors.strip()) == (2, True), errors


@pytest.mark.parametrize("command", ["evaluate", "resume"])
def test_commands_that_need_a_run_say_so_of_a_model(trained, capsys, command):
    for model in ("zoo:mnist-wise_ale", trained / "run" / "model"):
        code, _, errors = run(capsys, command, model)
        assert (code, f"{model} is a model without its run" in errors, errors.count("\n")) == (2, True, 1), errors


def test_one_row_is_not_called_rows(trained, tmp_path, capsys):
    write(tmp_path / "one.csv", 1)
    code, said, _ = run(capsys, "embed", trained / "run", tmp_path / "one.csv", "-o", tmp_path / "c.csv")
    assert (code, said.startswith("1 row, ")) == (0, True)
    code, said, _ = run(capsys, "decode", trained / "run", tmp_path / "c.csv", "-o", tmp_path / "x.csv")
    assert (code, said.startswith("1 row of shape")) == (0, True)


def test_unseen_levels_can_be_said_with_the_file(trained, tmp_path, capsys):
    (tmp_path / "other.csv").write_text((trained / "x.csv").read_text().replace("red", "purple"))
    for spec in (f"{tmp_path}/other.csv:unseen=missing", f"{tmp_path}/o*r.csv:unseen=missing"):
        out = tmp_path / ("codes" if "*" in spec else "codes.csv")
        code, _, errors = run(capsys, "embed", trained / "run", spec, "-o", out)
        assert code == 0, errors
    spec = f"{tmp_path}/other.csv:unseen=missing"
    assert run(capsys, "impute", trained / "run", spec, "-o", tmp_path / "filled.csv")[0] == 0
    assert run(capsys, "evaluate", trained / "run", "--data", spec)[0] == 0
    refused = ("embed", trained / "run", spec, "--unseen", "error", "-o", tmp_path / "codes.csv")
    code, _, errors = run(capsys, *refused)
    assert (code, "which training did not see" in errors) == (2, True)


def test_evaluate_on_other_rows_uses_the_models_levels(trained, tmp_path, capsys):
    write(tmp_path / "few.csv", 8)
    code, said, errors = run(capsys, "evaluate", trained / "run", "--data", tmp_path / "few.csv")
    assert code == 0, errors
    for measure in ("elbo", "rmse:price", "rmse_baseline:price", "accuracy:colour", "accuracy_baseline:colour"):
        assert measure in said


def test_the_explorer_shows_them(trained, tmp_path, capsys):
    code, said, err = run(capsys, "explore", trained / "run", "--html", tmp_path / "page.html")
    assert (code, err) == (0, "")
    assert "colour" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "MB" in said


def test_training_says_what_columns_are_when_it_ends_and_which_weights_it_keeps(tmp_path, capsys):
    data = write(tmp_path / "x.csv")
    options = ("--network", "mlp:hidden=8,start=none", "--lr", "0.05", "--threads", "1", "--no-figures")
    options = (*options, "--max-epochs", "60", "--patience", "3", "--out", tmp_path / "run")
    code, said, errors = run(capsys, "train", data, "--columns", "visits:label", *options)
    assert code == 0, errors
    assert "columns: 1 number (price), 1 category (colour: 3 levels); ignored: id (" in said
    assert "training ends when 3 epochs in a row have not lowered the held-out loss, or after 60" in said
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [line["held_out"]["loss"] for line in lines]
    best = 1 + losses.index(min(losses))
    assert best + 3 == len(losses) < 60
    assert f"kept: the weights of epoch {best}, where the held-out loss was lowest; no lower one followed" in said

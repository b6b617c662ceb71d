"""The quality benchmark: its measures against formulas computed here, and reruns that measure nothing twice."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from bench.quality import main
from bench.quality_data import load
from bench.quality_models import fit_ours
from bench.quality_rows import Key, Row, fill_in, read, table
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

SETTINGS = {"max_epochs": 2, "network": "mlp:hidden=8"}
TINY = json.dumps({"tiny": SETTINGS})


def bench(path: Path, *words: str) -> None:
    main(["--sets", "wine", "--dims", "2", "--seeds", "2", "--csv", str(path), "--configurations", TINY, *words])


def test_error_of_pca_is_what_the_leading_singular_vectors_leave(tmp_path: Path) -> None:
    bench(tmp_path / "rows.csv", "--run", "PCA")
    split = load("wine")
    train = (split.train - split.train.mean(0)) / split.train.std(0)
    test = (split.test - split.train.mean(0)) / split.train.std(0)
    left_out = np.linalg.svd(train)[2][2:]
    (row,) = read(tmp_path / "rows.csv").values()
    assert row.mse == pytest.approx(np.square(test @ left_out.T).sum() / test.size, rel=1e-5)


def test_every_row_is_in_one_part_of_the_split() -> None:
    split = load("wine")
    both = np.concatenate([split.train, split.test])
    assert len(split.train) == 124
    np.testing.assert_array_equal(np.sort(both, axis=0), np.sort(load_wine().data, axis=0))


def test_elbo_is_in_standardised_units() -> None:
    split = load("wine")
    elbo = fit_ours(split, 2, 0, SETTINGS).elbo
    x = split.standardised(split.test)
    assert elbo is not None
    # After two epochs the model is that of probabilistic PCA, whose log density in these units is scikit-learn's score.
    train = split.standardised(split.train)
    assert elbo == pytest.approx(PCA(2).fit(train).score(x), abs=0.5)


def test_rerun_skips_finished_rows_unless_told_to_measure_again(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    bench(path, "--run", "PCA,tiny")
    first = path.read_text()
    assert len(first.splitlines()) == 1 + 1 + 2  # the header, PCA, which has no seeds, and two seeds
    bench(path, "--run", "PCA,tiny")
    assert path.read_text() == first
    bench(path, "--run", "PCA", "--again")
    assert len(path.read_text().splitlines()) == 5
    assert len(read(path)) == 3


@pytest.mark.slow  # each process imports torch
def test_processes_measure_the_same(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    bench(one, "--run", "tiny")
    bench(two, "--run", "tiny", "--processes", "2")
    assert {key: row.mse for key, row in read(one).items()} == {key: row.mse for key, row in read(two).items()}


def test_table_gives_means_over_seeds_and_ratios_to_pca() -> None:
    def row(seed: int, configuration: str, mse: float) -> Row:
        return Row("wine", 2, seed, configuration, mse, None, 2, 0.5, None, 1.0, 10, 1, "{}", "0", "abc")

    made = table([row(0, "ours", 1.0), row(1, "ours", 3.0), row(0, "PCA", 4.0)])
    cells = [dict(zip(made.columns, line, strict=True)) for line in made.rows]
    assert [line["configuration"] for line in cells] == ["PCA", "ours"]
    assert cells[1]["MSE"] == "2 ± 1.41"
    assert cells[1]["MSE / PCA"] == "0.5 ± 0.354"
    assert cells[1]["ELBO"] == "-"


def test_other_settings_under_a_measured_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    bench(path, "--run", "tiny")
    with pytest.raises(SystemExit, match="tiny was measured with"):
        bench(path, "--run", "tiny", "--configurations", '{"tiny": {"lr": 0.1}}')


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no set is called beer"):
        main(["--sets", "beer", "--csv", str(tmp_path / "rows.csv")])
    with pytest.raises(SystemExit, match="no configuration is called fast"):
        bench(tmp_path / "rows.csv", "--run", "fast")


@pytest.mark.skipif(find_spec("pythae") is None, reason="pythae is not installed")
def test_missing_time_of_ours_leaves_pythae_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench(tmp_path / "rows.csv", "--run", "pythae AE")
    assert "as long as ours, which was not measured" in capsys.readouterr().out
    assert Key("wine", 2, 0, "pythae AE") not in read(tmp_path / "rows.csv")


def test_the_short_table_gives_means_over_seeds_as_multiples_of_pcas_error() -> None:
    def row(configuration: str, seed: int, mse: float) -> Row:
        return Row("wine", 2, seed, configuration, mse, None, 2, None, None, 1.5, 10, 1, "{}", "0", "abc")

    rows = [row("PCA", 0, 0.5), row("ours", 0, 0.2), row("ours", 1, 0.4), row("pythae AE", 0, 1.0)]
    page = fill_in("before\n<!-- quality -->\nold\n<!-- end -->\nafter", rows)
    assert "| wine | 2 | 0.60 | 0.40, 0.80 | 2.00 | 2 | 1.5 |" in page
    assert "old" not in page
    assert page.startswith("before\n")
    assert page.endswith("\nafter")
    brief = fill_in("<!-- quality: wine -->\n<!-- end -->", rows)
    assert "| wine | 2 | 0.60 | 2.00 | 1.5 |" in brief
    assert fill_in("<!-- quality: digits -->\n<!-- end -->", rows).count("|\n") == 2  # titles and rule alone

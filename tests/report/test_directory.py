"""Pages made again from what lies on disk: of a run, a comparison, a reproduction that is not finished."""

import json
from dataclasses import replace

import pytest

from wiseale.cli import main
from wiseale.cli.display import RunDisplay
from wiseale.config import TrainConfig
from wiseale.errors import RunError
from wiseale.evaluation.evaluate import evaluate
from wiseale.evaluation.measures import defined
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Comparison
from wiseale.figures.style import SavedFigure
from wiseale.paper.reproduction import keep_request, read_reproduction
from wiseale.report import comparison as page_of_comparison
from wiseale.report.tables import settings_table, systems_table
from wiseale.runs.train import start

FIGURES = {
    *("training_curves", "rate_distortion", "bound_sandwich", "reconstructions", "prior_samples", "interpolations"),
    *("traversals", "manifold_grid", "posteriors", "latent_map"),
}


SMALL = TrainConfig(
    data="sine:n=150,n_test=80", network="mlp:hidden=8", max_epochs=1, batch_size=16, latent_dim=2, threads=1
)


def finish(comparison, runs):
    """Train and evaluate the first runs of a comparison."""
    for job in comparison.jobs()[:runs]:
        job.out.parent.mkdir(parents=True)
        start(job.config, job.out, RunDisplay())
        evaluate(job.out, most=80, nll_samples=2)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """A reproduction of two systems on sine waves with a 2-D code, of which a third is missing."""
    out = tmp_path_factory.mktemp("reproduction")
    keep_request(out, "smoke", {"celeba": "no faces here: skipped"})
    keep_request(out, "smoke")
    comparison = Comparison(SMALL, (s.WISE_ALE, s.AEVB, s.WAE_MMD), 1, out / "sine", evaluate_rows=80)
    comparison.keep_request()
    finish(comparison, 2)
    return out


def report(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["report", *map(str, arguments)])
    return ended.value.code


def test_a_reproduction(out):
    assert report(out) == 0
    page = (out / "report.html").read_text()
    assert {path.stem for path in (out / "sine" / "figures").glob("*.svg")} == FIGURES
    assert page.count("<img ") == len(FIGURES)
    assert (out / "figures" / "figure5a.svg").exists()
    assert "no faces here: skipped" in page
    claims = json.loads((out / "tables" / "claims.json").read_text())
    assert {row["claim"] for row in claims} == {f"C{n}" for n in range(1, 12)}
    assert {row["verdict"] for row in claims} == {"not decided"}
    first = claims[0]["numbers"]
    assert first.count(";") == 0
    assert "missing: runs of 16 systems (sine 4, mnist 4, celeba 4, teapot 4), named in tables/claims_missing" in first
    named = json.loads((out / "tables" / "claims_missing.json").read_text())
    assert sum(row["what it says"] == claims[0]["what it says"] for row in named) == 16
    (missing,) = json.loads((out / "tables" / "sine_unfinished.json").read_text())
    assert missing == {"run": "WAE-MMD", "last log line": "it has not begun"}
    measured = json.loads((out / "sine" / "runs" / "aevb" / "seed-0" / "evaluation.json").read_text())["measures"]
    results = json.loads((out / "tables" / "sine_waves_results.json").read_text())
    each = json.loads((out / "tables" / "sine_waves_measures_by_run.json").read_text())
    (full,) = (row["value"] for row in each if (row["system"], row["measure"]) == ("AEVB", "mse"))
    assert float(full) == measured["mse"]
    weights = json.loads((out / "tables" / "sine_waves_systems.json").read_text())
    assert [row["effective weight"] for row in weights] == ["1", "1"]
    shown = {row["system"]: row["MSE"] for row in results}
    assert shown.keys() == {"WiSE-ALE, weight 1", "AEVB"}
    assert shown["AEVB"] == f"{measured['mse']:.3f}"


def test_a_reproduction_of_which_only_the_sweep_was_chosen(tmp_path):
    keep_request(tmp_path, "smoke")
    headline = Comparison(SMALL, (s.WISE_ALE,), 1, tmp_path / "sine", evaluate_rows=80)
    sweep = Comparison(SMALL, (s.sweep_of_wise_ale("4"),), 1, tmp_path / "sine" / "sweep", evaluate_rows=80)
    for comparison in (headline, sweep):
        comparison.keep_request()
    finish(sweep, 1)
    assert report(tmp_path) == 0
    (shown,) = json.loads((tmp_path / "tables" / "sine_waves_results.json").read_text())
    assert shown["system"] == "WiSE-ALE, weight 4"
    assert (tmp_path / "figures" / "figure5a.svg").exists()


def test_settings_of_all_runs_are_those_that_all_runs_have(tmp_path):
    comparison = Comparison(SMALL, (s.AEVB, s.AEVB_WARM_UP), 1, tmp_path / "out", evaluate_rows=80)
    comparison.keep_request()
    finish(comparison, 2)
    results = comparison.results()
    shared = dict(settings_table(results, "settings").rows)
    assert "prior warmup" not in shared
    assert shared["batch size"] == str(SMALL.batch_size)
    own = {row[0]: row[2] for row in systems_table(results, "systems").rows}
    assert own == {"AEVB": "prior_warmup 0.0", "AEVB, KL warm-up": "prior_warmup 5.0"}
    # a system without the first result's seed is shown too
    other = [replace(results[0], seed=1), results[1]]
    assert [row[0] for row in systems_table(other, "systems").rows] == ["AEVB", "AEVB, KL warm-up"]


def test_a_comparison_in_markdown(out, monkeypatch):
    one = [SavedFigure(out / "sine" / "figures" / "a.png", "a picture")]
    monkeypatch.setattr(page_of_comparison, "draw_all", lambda figures, results: one)
    assert report(out / "sine", "--markdown") == 0
    page = (out / "sine" / "report.md").read_text()
    assert "![a picture](figures/a.png)" in page
    assert "it has not begun" in page
    assert not (out / "sine" / "report.html").exists()


def test_a_run(out, capsys):
    run = out / "sine" / "runs" / "wise_ale" / "seed-0"
    assert report(run) == 0
    page = (run / "report.html").read_text()
    assert page.count("<img ") == len(FIGURES) - 1  # no plane of rate and distortion for a single point
    assert "<title>WiSE-ALE on sine</title>" in page
    assert "A model that turns each signal of sine into 2 numbers, its code, and back." in page
    assert page.index("Mean codes of") < page.index("<th>MSE</th>")
    shown = json.loads((run / "tables" / "all_measures.json").read_text())
    assert all(defined([row["measure"]]) for row in shown)
    assert "<dt>mutual_information</dt>" in page
    assert "docs/measures.md" not in page
    (run / "evaluation.json").rename(run / "elsewhere")
    capsys.readouterr()
    assert report(run) == 2
    assert "has not been evaluated" in capsys.readouterr().err
    (run / "elsewhere").rename(run / "evaluation.json")


def test_what_cannot_be_reported(out, tmp_path, capsys):
    assert report(tmp_path) == 2
    assert "holds no reproduction, comparison, search or run" in capsys.readouterr().err
    with pytest.raises(RunError, match="at scale smoke: choose another"):
        keep_request(out, "small")
    (tmp_path / "reproduction.json").write_text('{"scale": "huge", "notes": {}}')
    with pytest.raises(RunError, match=r"reproduction.json: scale .*'huge'.*smoke, small, paper"):
        read_reproduction(tmp_path)


def test_a_run_with_one_row_held_out(tmp_path, capsys):
    """There is no path between one code and another: the figure of interpolations is left out."""
    (tmp_path / "table.csv").write_text("a,b,k\n" + "".join(f"{i},{i * i % 7},{'xy'[i % 2]}\n" for i in range(5)))
    run = tmp_path / "run"
    settings = ("--network", "mlp:hidden=4", "--latent-dim", "2", "--max-epochs", "1", "--held-out", "0.2")
    for words in (["train", f"{tmp_path / 'table.csv'}:labels=k", *settings, "--out", run], ["evaluate", run]):
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, words)))
        assert ended.value.code == 0
    assert report(run) == 0
    assert not (run / "figures" / "interpolations.png").exists()
    assert (run / "figures" / "traversals.png").exists()

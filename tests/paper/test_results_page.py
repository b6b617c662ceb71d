"""The page of results: built from kept rows, curves and arrays alone, after the runs themselves are gone."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from docs.pages.__main__ import rebuild
from docs.pages.figure_arrays import FigureArrays, SystemArrays
from docs.pages.figures import draw_figures
from docs.pages.kept import TOY_TABLES, Results
from tests.paper.rows import PAPER, seeds

from wiseale.cli.display import RunDisplay
from wiseale.config import TrainConfig
from wiseale.errors import RunError
from wiseale.evaluation.evaluate import evaluate
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Comparison
from wiseale.paper.page import reproduction_page
from wiseale.paper.reproduction import keep_request, read_reproduction
from wiseale.runs.train import start

CHOOSING = "# What to choose\n\n<!-- results: weights sine -->\n\n<!-- end -->\n"


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    """WiSE-ALE and AEVB on a few sine waves, and AEVB with another network as a control."""
    out = tmp_path_factory.mktemp("reproduction") / "out"
    keep_request(out, "small")
    base = TrainConfig(data="sine:n=150,n_test=80", network="mlp:hidden=8", max_epochs=2, batch_size=16, threads=1)
    control = TrainConfig(**{**vars(base), "network": "mlp:hidden=4"})
    for comparison in (
        Comparison(base, (s.WISE_ALE, s.AEVB), 1, out / "sine", 80),
        Comparison(control, (s.AEVB,), 1, out / "sine" / "narrow", 80),
    ):
        comparison.keep_request()
        for job in comparison.jobs():
            job.out.parent.mkdir(parents=True)
            start(job.config, job.out, RunDisplay())
            evaluate(job.out, most=80, nll_samples=2)
    return out


@pytest.fixture
def docs(tmp_path):
    (tmp_path / "choosing.md").write_text(CHOOSING)
    return tmp_path


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_rows_name_run_condition_and_commit(reproduction):
    rows = read_reproduction(reproduction).rows()
    assert [(row.system, row.condition.control) for row in rows] == [
        *(("AEVB", ""), ("WiSE-ALE, weight 1", ""), ("AEVB", "narrow"))
    ]
    condition = rows[0].condition
    assert (condition.rows, condition.epochs, condition.batch_size, condition.n_eval) == (150, 2, 16, 80)
    assert (condition.data, condition.init) == ("sine:n=150,n_test=80", "glorot")
    assert rows[0].measures["mse"] > 0
    assert rows[0].seconds > 0
    assert "data_root" not in rows[0].config


def test_the_page_is_built_again_without_the_runs(reproduction, docs, tmp_path_factory):
    moved = tmp_path_factory.mktemp("moved") / "out"
    shutil.copytree(reproduction, moved)
    page = rebuild(docs, [moved])
    first = files(docs)
    assert {"figure5a.png", "figure6.png"} == {path.name for path in (docs / "results" / "figures").iterdir()}
    text = page.read_text()
    for claim in range(1, 12):
        assert f"| C{claim} |" in text
    assert "| held |" not in text
    assert "mnist: AEVB, 0 of 3 seeds" in text
    assert "sine: AEVB, 1 of 3 seeds" in text
    assert "narrow" in text
    shutil.rmtree(moved)
    rebuild(docs, [])
    assert files(docs) == first


def test_added_twice_changes_nothing(reproduction, docs):
    rebuild(docs, [reproduction])
    first = files(docs)
    rebuild(docs, [reproduction])
    assert files(docs) == first


def test_without_any_run_every_claim_is_open(docs):
    text = rebuild(docs, []).read_text()
    assert "| held |" not in text
    assert "| not held |" not in text
    assert "No run has been added yet" in text
    assert "Not measured yet: sine has no run at scale 'paper'." in (docs / "choosing.md").read_text()


def test_a_rehearsal_is_not_kept(tmp_path):
    keep_request(tmp_path / "smoke", "smoke")
    with pytest.raises(RunError, match="rehearsal"):
        Results(tmp_path / "results").add(tmp_path / "smoke")


def test_figures_1_and_5b_are_drawn_from_kept_arrays(tmp_path):
    draws = np.random.default_rng(0)
    rows = []
    results = Results(tmp_path)
    for experiment, shape in (("mnist", (8, 1, 28, 28)), ("celeba", (8, 3, 64, 64))):
        condition = replace(PAPER, experiment=experiment)
        rows += [replace(one, condition=condition) for one in seeds(s.AEVB, (1.0, 2.0))]
        x, mu = draws.uniform(size=shape).astype(np.float32), draws.normal(size=(64, 2)).astype(np.float32)
        arrays = {one.name: SystemArrays(x, mu, np.abs(mu)) for one in (s.WISE_ALE, s.AEVB)}
        arrays[s.WAE_MMD.name] = SystemArrays(x, mu, None)
        FigureArrays(condition.key, 0, x, arrays).save(tmp_path / "arrays" / f"{experiment}-paper.npz")
    pictures = draw_figures(results, rows, "paper")
    assert [picture.path.stem for picture in pictures] == ["figure1", "figure5b"]
    assert all(picture.path.stat().st_size > 5000 for picture in pictures)
    other = [replace(one, condition=replace(one.condition, epochs=1)) for one in rows]
    assert draw_figures(results, other, "paper") == []  # arrays of another condition are not shown


def test_no_figure_where_none_of_its_systems_has_been_run(tmp_path):
    rows, x = [], np.zeros((8, 1, 28, 28), np.float32)
    for experiment in ("mnist", "sine", "celeba"):
        condition = replace(PAPER, experiment=experiment)
        rows += [replace(one, condition=condition) for one in seeds(s.WISE_ALE_AS_WRITTEN, (1.0, 2.0))]
        shown = s.WISE_ALE_AS_WRITTEN if experiment == "mnist" else s.WAE_MMD_GAUSSIAN  # of other figures
        arrays = {shown.name: SystemArrays(x, np.zeros((64, 2), np.float32), None)}
        FigureArrays(condition.key, 0, x, arrays).save(tmp_path / "arrays" / f"{experiment}-paper.npz")
    assert draw_figures(Results(tmp_path), rows, "paper") == []


def test_a_small_reproduction_leaves_the_papers_figures_and_toy(reproduction, docs, tmp_path):
    """Arrays and the bound analysis are kept for each scale."""
    results = Results(docs / "results")
    large = replace(PAPER, experiment="sine")
    x = np.zeros((8, 1, 16), np.float32)
    arrays = FigureArrays(large.key, 0, x, {s.AEVB.name: SystemArrays(x, np.zeros((4, 2), np.float32), None)})
    arrays.save(results.folder / "arrays" / "sine-paper.npz")
    copied = tmp_path / "small"
    shutil.copytree(reproduction, copied)
    for folder, text in ((copied / "toy" / "tables", "small"), (results.folder / "toy" / "paper" / "tables", "paper")):
        folder.mkdir(parents=True)
        for name in TOY_TABLES:
            (folder / f"{name}.json").write_text(text)
    results.add(copied)
    assert results.arrays(large) is not None
    assert results.arrays(results.rows()[0].condition) is not None
    for scale in ("small", "paper"):
        folder = results.toy(scale)
        assert [(folder / "tables" / f"{name}.json").read_text() for name in TOY_TABLES] == [scale] * 3


def test_an_unfinished_bound_analysis_is_not_added(reproduction, tmp_path):
    copied = tmp_path / "small"
    shutil.copytree(reproduction, copied)
    (copied / "toy" / "tables").mkdir(parents=True)
    (copied / "toy" / "tables" / "two_gaussians.json").write_text("{}")
    results = Results(tmp_path / "results")
    results.add(copied)
    assert results.toy("small") is None


def test_the_report_keeps_controls_apart(reproduction, monkeypatch):
    monkeypatch.setattr("wiseale.paper.page.draw_all", lambda *arguments: [])
    document, _ = reproduction_page(reproduction)
    tables = {section.title: section.blocks for section in document.sections}
    (control,) = tables["Sine waves: narrow"]
    own = tables["Sine waves: Results"][0]
    shown = {row[0]: row[1] for row in own.rows}
    by_control = {row.condition.control: row.measures["mse"] for row in read_reproduction(reproduction).rows()[::2]}
    assert shown["AEVB"] == f"{by_control['']:.3f}"
    assert control.rows[0][:2] == ("AEVB", f"{by_control['narrow']:.3f}")

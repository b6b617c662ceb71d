"""Runs of `wiseale reproduce`: their order, stopping after a limit, and continuing."""

import pytest
from tests.cli.commands import run
from tests.paper.rows import row

from wiseale import registry
from wiseale.config import TrainConfig
from wiseale.experiments import systems as s
from wiseale.experiments.jobs import Job, run_jobs
from wiseale.experiments.systems import WAE_MMD_GAUSSIAN
from wiseale.paper import reproduction
from wiseale.paper.experiments import HEADLINE
from wiseale.paper.reproduction import plan_runs
from wiseale.paper.rows import read_rows
from wiseale.processes.engines import local_engine
from wiseale.report.document import Document
from wiseale.runs.directory import RunDirectory


def test_runs_that_decide_most_come_first(tmp_path):
    (tmp_path / "portraits").mkdir()
    jobs = plan_runs(list(registry.EXPERIMENTS), "paper", tmp_path / "out", tmp_path).jobs
    assert len({job.name for job in jobs}) == len(jobs)
    assert jobs[0].name == "sine: WiSE-ALE, weight 1, seed 0"

    def kind(job):
        folder = job.out.relative_to(tmp_path / "out").parts[1]
        return ("headline" if job.name in headline else "others") if folder == "runs" else folder

    headline = {
        f"{e}: {system.name}, seed {seed}" for e in registry.EXPERIMENTS for system in HEADLINE for seed in range(3)
    }
    headline |= {f"mnist: {WAE_MMD_GAUSSIAN.name}, seed {seed}" for seed in range(3)}
    assert headline <= {job.name for job in jobs}
    kinds = [kind(job) for job in jobs]
    order = ["headline", "sweep", "time-per-step", "others", "init-torch", "learned-noise", "recipe-ours", "estimators"]
    assert kinds == sorted(kinds, key=order.index)
    sweep = [job.config.objective for job in jobs if kind(job) == "sweep"]
    ends = [n for n, objective in enumerate(sweep) if objective.endswith(("=16", "=1/16"))]
    assert min(ends) > max(n for n in range(len(sweep)) if n not in ends)
    assert {job.config.seed for job in jobs if "celeba" in job.name} == {0, 1, 2}
    assert all(job.config.threads == 1 for job in jobs)


def test_without_faces_their_runs_are_left_out(tmp_path):
    plan = plan_runs(["celeba"], "paper", tmp_path / "out", tmp_path)
    assert plan.jobs == []
    assert "skipped" in plan.notes["celeba"]


@pytest.mark.long
def test_a_run_is_stopped_after_the_limit_and_continued(tmp_path):
    settings = {"network": "mlp:hidden=8", "batch_size": 16, "threads": 1, "checkpoint_every": 10**6}
    long = Job("long", TrainConfig(data="sine:n=150,n_test=80", max_epochs=10**6, **settings), tmp_path / "long")
    with local_engine(1) as engine:
        assert run_jobs([long], engine, lambda jobs: None, limit=0) == []
    assert long.next_step == "train"
    # Stop once it trains, however slow the machine is: the limit is over at the first epoch.
    clock = [0.0]

    def stop_at_first_epoch(jobs):
        clock[0] = 1e9 if long.epochs_done() else 0.0

    with pytest.MonkeyPatch.context() as patch, local_engine(1) as engine:
        patch.setattr("wiseale.processes.engines.time.monotonic", lambda: clock[0])
        assert run_jobs([long], engine, stop_at_first_epoch, limit=60) == []
    assert long.next_step == "resume"
    assert any(RunDirectory(long.out).checkpoints.iterdir())


def test_a_limit_of_no_time_leaves_every_run_to_a_later_call(tmp_path, capsys):
    out = tmp_path / "out"
    code, printed, _ = run(capsys, "reproduce", "sine", "--scale", "smoke", "--out", out, "--limit-minutes", "0.0001")
    assert code == 0
    assert "10 runs to go: call again to continue" in printed
    assert not (out / "runs.csv").exists()
    code, printed, _ = run(capsys, "reproduce", "sine", "--scale", "smoke", "--out", out, "--list")
    assert printed.splitlines()[0] == "1 sine: WiSE-ALE, weight 1: train"
    assert len(printed.splitlines()) == 10


def test_the_analysis_of_the_bounds_is_made_where_it_is_wanted_and_missing(tmp_path, capsys, monkeypatch):
    made = []

    def analysis(out, scale, report):
        made.append(scale)
        (out / "tables").mkdir(parents=True, exist_ok=True)
        (out / "tables" / "judgements.json").write_text("[]")

    monkeypatch.setattr("wiseale.paper.toy.run_toy", analysis)
    monkeypatch.setattr("wiseale.paper.page.reproduction_page", lambda out, toy: (Document("", "", ()), []))
    for command, times in ((("all", "--only", "AEVB"), 0), (("all",), 1), (("all",), 0), (("toy",), 1)):
        made.clear()
        code, *_ = run(capsys, "reproduce", *command, "--scale", "smoke", "--out", tmp_path, "--limit-minutes", "1e-4")
        assert (code, len(made)) == (0, times)


def test_listing_writes_nothing(tmp_path, capsys):
    code, printed, _ = run(capsys, "reproduce", "mnist", "--scale", "paper", "--out", tmp_path / "out", "--list")
    assert code == 0
    assert "mnist: init-torch, AEVB, seed 2: train" in printed
    assert not (tmp_path / "out").exists()


def test_rows_are_written_even_when_interrupted(tmp_path, monkeypatch):
    """An interruption during the runs leaves runs.csv with what was done before it."""
    done = row(s.AEVB, 0, mse=0.5)

    def interrupted(jobs, engine, show, limit):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction, "run_jobs", interrupted)
    monkeypatch.setattr(reproduction.ExperimentResult, "rows", lambda self, scale: [done])
    with pytest.raises(KeyboardInterrupt):
        reproduction.run_experiments(["sine"], "smoke", tmp_path / "out", None, None, lambda jobs: None)
    (kept,) = read_rows(tmp_path / "out" / "runs.csv")
    assert (kept.system, kept.measures) == ("AEVB", {"mse": 0.5})

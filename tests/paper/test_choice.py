"""Which runs `wiseale reproduce` makes: chosen by name, with more seeds, and without those whose rows are known."""

import json
from dataclasses import asdict, replace

import pytest
from tests.cli.commands import run
from tests.paper.rows import PAPER, row

from wiseale.experiments import systems as s
from wiseale.paper.reproduction import Choice, is_row_of, plan_runs
from wiseale.paper.rows import write_rows

HELD_OUT = {"held_out": 0.05, "patience": None}  # what `auto` comes to in the paper's experiments


def names(out, choice, *experiments):
    return [job.name for job in plan_runs(experiments or ["sine"], "paper", out, choice=choice).jobs]


def kept_row(job, system, condition=PAPER):
    """The row that the run of a job would get: its settings resolved, its folders without their paths."""
    network = f"{job.config.network or 'paper_sine:init=glorot'},sigma_min=0.001"
    config = asdict(job.config) | HELD_OUT | {"network": network, "max_epochs": 50, "threads": 2, "data_root": "/else"}
    warmup = {None: 0.0, "paper": 0.0, "ours": 2.0}[job.config.recipe]  # of sine waves, where a system has none
    made = row(system, job.config.seed, condition, mse=1.0)
    return replace(made, config=json.dumps(config), prior_warmup=system.settings.get("prior_warmup", warmup))


def test_runs_are_chosen_by_parts_of_their_names(tmp_path):
    every = names(tmp_path, Choice())
    chosen = names(tmp_path, Choice(("aevb, KL WARM-up", "exact")))
    assert chosen == [name for name in every if "AEVB, KL warm-up" in name or "exact" in name]
    assert {name.rpartition(",")[0] for name in chosen} == {
        "sine: AEVB, KL warm-up",
        "sine: WiSE-ALE, exact reconstruction",
        "sine: init-torch, AEVB, KL warm-up",
    }


def test_more_seeds_are_added_and_never_taken_away_again(tmp_path):
    three, five = names(tmp_path, Choice(("WAE-MMD",))), names(tmp_path, Choice(("WAE-MMD",), 5))
    assert five == [*three, "sine: WAE-MMD, seed 3", "sine: WAE-MMD, seed 4"]
    for comparison in plan_runs(["sine"], "paper", tmp_path, choice=Choice(seeds=5)).comparisons["sine"]:
        comparison.keep_request()
    assert names(tmp_path, Choice(("WAE-MMD",))) == five


def test_runs_with_a_known_row_are_left_out(tmp_path):
    jobs = {job.name: job for job in plan_runs(["sine"], "paper", tmp_path).jobs}
    known = [
        kept_row(jobs["sine: AEVB, seed 1"], s.AEVB),
        kept_row(jobs["sine: AEVB, KL warm-up, seed 0"], s.AEVB_WARM_UP),
        kept_row(jobs["sine: init-torch, AEVB, seed 2"], s.AEVB, replace(PAPER, control="init-torch")),
        kept_row(jobs["sine: recipe-ours, AEVB, seed 0"], s.AEVB, replace(PAPER, control="recipe-ours")),
        kept_row(jobs["sine: WiSE-ALE, Monte Carlo, seed 0"], s.ESTIMATORS[1]),  # apart, but not a control
        kept_row(jobs["sine: WAE-MMD, seed 0"], s.WAE_MMD, replace(PAPER, scale="small")),
        kept_row(jobs["sine: WAE-MMD, seed 1"], s.WAE_MMD, replace(PAPER, experiment="mnist")),
    ]
    left = names(tmp_path, Choice(known=tuple(known)))
    assert set(jobs) - set(left) == {
        "sine: AEVB, seed 1",
        "sine: AEVB, KL warm-up, seed 0",
        "sine: init-torch, AEVB, seed 2",
        "sine: recipe-ours, AEVB, seed 0",
        "sine: WiSE-ALE, Monte Carlo, seed 0",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [("data", "sine:n=5"), ("batch_size", 32), ("network", "paper_sine:init=torch"), ("seed", 4), ("lr", 0.1)],
)
def test_a_run_with_another_setting_is_not_known(name, value, tmp_path):
    job = plan_runs(["sine"], "paper", tmp_path, choice=Choice(("sine: AEVB",))).jobs[0]
    found = kept_row(job, s.AEVB)
    assert is_row_of(job.config, found)
    assert not is_row_of(replace(job.config, **{name: value}), found)


def test_a_row_of_a_network_that_no_longer_exists_is_of_no_run(tmp_path):
    job = plan_runs(["sine"], "paper", tmp_path, choice=Choice(("init-torch, AEVB",))).jobs[0]
    gone = kept_row(job, s.AEVB)
    gone = replace(gone, config=gone.config.replace("paper_sine:", "gone:"))
    assert job.config.network is not None
    assert not is_row_of(job.config, gone)


def test_folders_of_data_do_not_count(tmp_path):
    (tmp_path / "portraits").mkdir()
    job = plan_runs(["celeba"], "paper", tmp_path / "out", tmp_path).jobs[0]
    assert str(tmp_path) in job.config.data
    found = kept_row(job, s.WISE_ALE, replace(PAPER, experiment="celeba"))
    settings = json.loads(found.config) | {"data": "celeba:folder=portraits", "max_epochs": job.config.max_epochs}
    found = replace(found, config=json.dumps(settings))
    assert is_row_of(job.config, found)
    assert not is_row_of(replace(job.config, max_epochs=60), found)


def test_the_command_lists_the_chosen_runs(tmp_path, capsys):
    job = plan_runs(["sine"], "paper", tmp_path / "out", choice=Choice(("AEVB, seed 2",))).jobs[0]
    write_rows(tmp_path / "runs.csv", [kept_row(job, s.AEVB)])
    command = ("reproduce", "sine", "--scale", "paper", "--out", tmp_path / "out", "--list")
    code, printed, _ = run(capsys, *command, "--only", "sine: AEVB, seed", "--known", tmp_path / "runs.csv")
    assert code == 0
    assert printed.splitlines() == ["1 sine: AEVB, seed 0: train", "2 sine: AEVB, seed 1: train"]


def test_a_choice_that_leaves_nothing_is_refused_in_one_line(tmp_path, capsys):
    out = tmp_path / "out"
    code, _, errors = run(capsys, "reproduce", "sine", "--out", out, "--only", "GAN!")
    assert code == 2
    assert errors.strip().endswith(
        "--only 'GAN!' leaves no run: give a part of a name, such as 'sine: WiSE-ALE, weight 1, seed 0'"
    )
    assert not out.exists()
    code, _, errors = run(capsys, "reproduce", "sine", "--out", out, "--known", tmp_path / "none.csv")
    assert (code, len(errors.strip().splitlines())) == (2, 1)
    assert "none.csv: No such file" in errors

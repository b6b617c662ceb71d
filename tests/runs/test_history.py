"""A run knows what it resumes: edited settings, damaged history and another initial model are noticed."""

import json
import shutil

import numpy as np
import pytest

from wiseale.cli.display import NoDisplay, RunDisplay
from wiseale.config import TrainConfig
from wiseale.errors import ModelFileError, RunError
from wiseale.estimator.loading import load
from wiseale.platform.atomic_files import MANIFEST, sha256
from wiseale.runs.directory import RunDirectory
from wiseale.runs.train import resume, start

EPOCHS = 4


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    np.save(folder / "table.npy", np.random.default_rng(0).normal(size=(50, 3)))
    settings = TrainConfig(
        data=str(folder / "table.npy"),
        network="mlp:hidden=4",
        max_epochs=EPOCHS,
        batch_size=9,
        threads=1,
        checkpoint_every=7,
    )
    start(settings, folder / "run", NoDisplay())
    return folder / "run"


@pytest.fixture
def run(finished, tmp_path):
    """The run as it was before its last checkpoint."""
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    shutil.rmtree(path / "model")
    shutil.rmtree(max((path / "checkpoints").iterdir()))
    return path


def edit(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def weights(run):
    return (run / "model" / "model.safetensors").read_bytes()


def test_it_ends_as_if_it_had_never_stopped(run, finished):
    resume(run, NoDisplay())
    assert weights(run) == weights(finished)
    assert (run / "metrics.jsonl").read_bytes() == (finished / "metrics.jsonl").read_bytes()


@pytest.mark.parametrize(("name", "value"), [("lr", 0.5), ("max_epochs", 9), ("seed", 1), ("objective", "aevb")])
def test_edited_settings_that_change_the_experiment_are_refused(run, name, value):
    edit(run / "config.json", lambda values: values.update({name: value}))
    with pytest.raises(RunError, match=r"config.json has changed"):
        resume(run, NoDisplay())


def test_edited_facts_are_refused(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    edit(tmp_path / "run" / "config.json", lambda values: values["resolved"].update(n_train=7))
    with pytest.raises(RunError, match=r"config.json has changed"):
        RunDirectory.open(tmp_path / "run").read_record()


def test_edited_places_are_said_aloud(run, finished, tmp_path, capsys):
    data = shutil.copy(finished.parent / "table.npy", tmp_path / "moved.npy")
    edit(run / "config.json", lambda values: values.update(data=str(data), threads=2))
    resume(run, RunDisplay())
    said = capsys.readouterr().out
    assert "config.json has been edited" in said
    assert "threads: started with 1, now 2: the end will not be the same to the last bit" in said


DAMAGES = {
    "a digit": lambda lines: [lines[0].replace("1", "2", 1), *lines[1:]],
    "a lost line": lambda lines: lines[1:],
    "a swapped line": lambda lines: [lines[1], lines[0], *lines[2:]],
    "not JSON": lambda lines: ["x\n", *lines[1:]],
    "nothing": lambda lines: [],
}


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_metrics_stop_a_resumption_and_can_be_restored(run, finished, how):
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(DAMAGES[how](lines)))
    with (
        pytest.warns(UserWarning, match=r"metrics.jsonl is damaged"),
        pytest.raises(RunError, match=r"metrics.jsonl is damaged: restore it"),
    ):
        resume(run, NoDisplay())
    (run / "metrics.jsonl").write_text("".join(lines))
    resume(run, NoDisplay())
    assert weights(run) == weights(finished)


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_metrics_of_a_finished_run_are_not_reported(finished, tmp_path, how):
    shutil.copytree(finished, tmp_path / "run")
    run = RunDirectory.open(tmp_path / "run")
    lines = run.metrics.read_text().splitlines(keepends=True)
    assert len(run.read_metrics()) == EPOCHS
    run.metrics.write_text("".join(DAMAGES[how](lines)))
    with pytest.raises(RunError, match=r"metrics.jsonl"):
        run.read_metrics()


def test_damage_after_the_checkpoint_before_costs_no_more_than_the_epochs_since(run, finished):
    """The newest checkpoint does not fit its history any more; the one before does."""
    older, newest = run / "checkpoints", max((finished / "checkpoints").iterdir())
    shutil.copytree(newest, older / newest.name)
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join([*lines[:-1], "x\n"]))
    with pytest.warns(UserWarning, match="using the checkpoint before it"):
        resume(run, NoDisplay())
    assert weights(run) == weights(finished)


@pytest.mark.parametrize(
    "change",
    [
        *({"step": -5}, {"epoch": -1}, {"step": True}, {"sums": []}, {"epoch": 10**30}, {"sums": {"loss": "x"}}),
        *({"new": 1}, {"history": None}),
    ],
)
def test_forged_checkpoints_are_passed_over(run, finished, change):
    (checkpoint,) = (run / "checkpoints").iterdir()
    edit(checkpoint / "state.json", lambda values: values.update(change))
    edit(
        checkpoint / MANIFEST, lambda values: values["sha256"].update({"state.json": sha256(checkpoint / "state.json")})
    )
    with pytest.warns(UserWarning, match=r"cannot read .*state.json"):
        resume(run, NoDisplay())
    assert weights(run) == weights(finished)


def test_an_empty_manifest_is_no_checkpoint(run, finished):
    (checkpoint,) = (run / "checkpoints").iterdir()
    (checkpoint / MANIFEST).write_text('{"sha256": {}}')
    with pytest.warns(UserWarning, match="does not list"):
        resume(run, NoDisplay())
    assert weights(run) == weights(finished)


def test_weights_of_another_network_are_refused_in_words(run, finished):
    (checkpoint,) = (run / "checkpoints").iterdir()
    shutil.copy(finished / "model" / "model.safetensors", checkpoint / "weights.safetensors")
    name = "weights.safetensors"
    edit(checkpoint / MANIFEST, lambda values: values["sha256"].update({name: sha256(checkpoint / name)}))
    with pytest.raises(ModelFileError, match="does not fit this run's network"):
        resume(run, NoDisplay())


def test_damaged_times_may_be_deleted(run, finished):
    (run / "timing.jsonl").write_text("x\n" + (run / "timing.jsonl").read_text())
    with pytest.raises(RunError, match=r"timing.jsonl, line 1, .*delete it"):
        resume(run, NoDisplay())
    (run / "timing.jsonl").unlink()
    resume(run, NoDisplay())
    assert weights(run) == weights(finished)
    assert [timing.epoch for timing in RunDirectory.open(run).read_timing()][-1] == EPOCHS


def test_another_initial_model_is_refused(finished, tmp_path):
    shutil.copytree(finished / "model", tmp_path / "initial")
    settings = TrainConfig(data=str(finished.parent / "table.npy"), network="mlp:hidden=4", max_epochs=1, threads=1)
    start(TrainConfig(**vars(settings) | {"init_from": str(tmp_path / "initial")}), tmp_path / "run", NoDisplay())
    for name in ("model", "checkpoints"):  # as it is after a kill before the first checkpoint
        shutil.rmtree(tmp_path / "run" / name)
    start(TrainConfig(**vars(settings) | {"seed": 5}), tmp_path / "other", NoDisplay())
    shutil.rmtree(tmp_path / "initial")
    shutil.copytree(tmp_path / "other" / "model", tmp_path / "initial")
    with pytest.raises(RunError, match="initial is not the model this run was started from"):
        resume(tmp_path / "run", NoDisplay())


def test_a_pinned_model_must_have_its_digest(finished):
    digest = sha256(finished / "model" / MANIFEST)
    assert load(finished, sha256=digest.upper()).n_epochs_ == EPOCHS
    with pytest.raises(ModelFileError, match=f"is not the model asked for.*{digest}"):
        load(finished / "model", sha256="0" * 64)


def test_a_restart_continues_only_the_run_that_was_asked_for(run, finished, monkeypatch):
    """Under ``torchrun --max-restarts`` the command is repeated and finds the run that it has begun."""
    monkeypatch.setenv("TORCHELASTIC_MAX_RESTARTS", "1")
    asked = TrainConfig(data="unused.npy", max_epochs=EPOCHS, batch_size=9)
    for other in ({"seed": 5}, {"objective": "aevb"}, {"max_epochs": EPOCHS + 1}):
        with pytest.raises(RunError, match=f"holds a run with {next(iter(other))} .* choose another --out"):
            start(TrainConfig(**vars(asked) | other), run, NoDisplay())
    start(asked, run, NoDisplay())
    model = RunDirectory(run).model / "model.safetensors"
    assert model.read_bytes() == (finished / "model" / "model.safetensors").read_bytes()

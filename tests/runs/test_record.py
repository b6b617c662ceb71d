"""The files of a run directory, read into records and written again."""

import dataclasses
import errno
import json
import sys
from dataclasses import asdict

import numpy as np
import pytest

from wiseale.cli.display import NoDisplay
from wiseale.config import SPECS, TrainConfig, from_values, read_file
from wiseale.data import load_dataset
from wiseale.errors import RunError
from wiseale.evaluation.evaluate import evaluate
from wiseale.evaluation.record import Evaluation
from wiseale.likelihoods import GaussianSettings
from wiseale.platform.json_files import to_json
from wiseale.runs.directory import RunDirectory, append_line, line_of, read
from wiseale.runs.train import start
from wiseale.training.plan import resolve


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("record")
    np.save(folder / "table.npy", np.random.default_rng(0).normal(size=(60, 3)))
    settings = TrainConfig(
        data=str(folder / "table.npy"), network="mlp:hidden=4", max_epochs=2, batch_size=8, threads=1
    )
    start(settings, folder / "run", NoDisplay())
    evaluate(folder / "run", nll_samples=2)
    return RunDirectory.open(folder / "run")


def test_every_file_is_written_as_it_was_read(run):
    assert run.read_record().to_json() == run.config.read_text()
    assert to_json(asdict(run.read_environment())) == run.environment.read_text()
    assert read(Evaluation.from_json, run.evaluation).to_json() == run.evaluation.read_text()
    assert "".join(map(line_of, run.read_metrics())) == run.metrics.read_text()
    assert "".join(map(line_of, run.read_timing())) == run.timing.read_text()


def test_a_run_is_repeated_from_its_configuration(run):
    """What ``wiseale train --config RUN/config.json`` reads resolves to the same settings, objects and all."""
    asked = from_values(TrainConfig, read_file(run.config))
    assert resolve(asked, load_dataset(asked.data)) == run.read_record().settings


def test_records_hold_what_the_files_hold(run):
    """Against the JSON itself, which is a contract with other readers."""
    config, lines = json.loads(run.config.read_text()), run.metrics.read_text().splitlines()
    record = run.read_record()
    assert config.pop("resolved") == {**vars(record.facts), "x_shape": [3]}
    plain = {name: value for name, value in vars(record.settings).items() if name not in SPECS or value is None}
    assert {name: config[name] for name in plain} == plain
    assert {config[name].partition(":")[0] for name in SPECS if name not in plain} == {
        *("wise_ale", "mlp", "gaussian", "constant")
    }
    assert config.keys() == vars(record.settings).keys()
    assert record.facts.n_train + record.facts.n_held_out == 60
    assert [list(json.loads(line)) for line in lines] == [["epoch", "step", "lr", "warmup", "train", "held_out"]] * 2
    assert run.read_metrics()[1].train["loss"] == json.loads(lines[1])["train"]["loss"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "cannot read"),
        ("[]", "it must hold a table"),
        ("{}", 'no table "resolved"'),
        ('{"resolved": {"n_train": 3}}', "missing"),
        ('{"resolved": {}, "batch": 8}', "batch is not a setting"),
        ('{"resolved": {}, "max_epochs": 2}', "latent_dim is missing"),
    ],
)
def test_a_damaged_configuration_is_refused_in_words(text, problem, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RunError, match=problem) as error:
        RunDirectory.open(tmp_path).read_record()
    assert "config.json" in str(error.value)


@pytest.mark.skipif(sys.platform == "win32", reason="no limits on file sizes")
def test_a_line_that_can_be_written_only_in_part_is_taken_back_and_the_system_says_why(run, tmp_path):
    import resource

    record = run.read_metrics()[0]
    path = tmp_path / "metrics.jsonl"
    append_line(path, record)
    whole, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 5, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught:
            append_line(path, record)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_bytes() == whole


def test_every_fact_belongs_to_the_experiment_and_no_setting_of_the_machine_does(run):
    """A checkpoint is refused where the experiment is another one."""
    record = run.read_record()
    facts = vars(record.facts)
    others = {"x_shape": (1, 3), "standardized": "none", "data_fingerprint": "0"}
    for name, value in facts.items():
        changed = dataclasses.replace(record.facts, **{name: others[name] if name in others else value + 1})
        assert dataclasses.replace(record, facts=changed).experiment != record.experiment, name
    machine = {"threads": 7, "device": "cuda", "processes": 3, "data_root": "/else", "checkpoint_every": 9}
    moved = dataclasses.replace(record.settings, figures=not record.settings.figures, **machine)
    assert dataclasses.replace(record, settings=moved).experiment == record.experiment
    for likelihood in (GaussianSettings(x_sigma=0.5), GaussianSettings(x_sigma="learned")):
        changed = dataclasses.replace(record.settings, likelihood=likelihood)
        assert dataclasses.replace(record, settings=changed).experiment != record.experiment

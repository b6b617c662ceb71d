"""A run that is resumed with other kernels, torch or machine says that its bits will differ."""

import dataclasses
import json
import shutil

import pytest

from wiseale.cli.display import RunDisplay
from wiseale.config import TrainConfig
from wiseale.runs.record import Environment
from wiseale.runs.train import resume, start

NOW = Environment(
    **dict.fromkeys(("wiseale", "numpy", "safetensors", "platform", "device", "data_fingerprint"), "same"),
    torch="2.13.0",
    machine="x86_64",
    kernels="compiled by gcc",
    python="3.11.7",
    processes=1,
    threads=2,
)


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ({}, None),
        ({"python": "3.14.0", "numpy": "1.26"}, None),
        ({"threads": 4}, "threads: started with 4, now 2"),
        (
            {"kernels": "not used: no C compiler found"},
            "kernels: started with not used: no C compiler found, now compiled",
        ),
        (
            {"torch": "2.10.0", "machine": "arm64"},
            "torch: started with 2.10.0, now 2.13.0; machine: started",
        ),
    ],
)
def test_what_rounds_differently_is_named_in_one_line(before, line):
    found = dataclasses.replace(NOW, **before).rounding_changes(NOW)
    assert len(found) == (line is not None)
    if line is not None:
        assert found[0].startswith(line)
        assert found[0].endswith("the end will not be the same to the last bit")


def test_resume_says_so_before_it_continues(tmp_path, capsys):
    run = tmp_path / "run"
    asked = TrainConfig(data="sine:n=100,n_test=1", network="mlp:hidden=4", max_epochs=1, threads=1)
    start(asked, run, RunDisplay())
    shutil.rmtree(run / "model")
    capsys.readouterr()
    resume(run, RunDisplay())
    assert "last bit" not in capsys.readouterr().out

    shutil.rmtree(run / "model")
    environment = json.loads((run / "environment.json").read_text(encoding="utf-8"))
    (run / "environment.json").write_text(json.dumps(environment | {"kernels": "older"}), encoding="utf-8")
    resume(run, RunDisplay())
    note = f"kernels: started with older, now {environment['kernels']}: the end will not be the same to the last bit"
    assert note in capsys.readouterr().out

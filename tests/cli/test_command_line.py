"""The command line as a user meets it: help, errors in one line, exit codes, options from the dataclass."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tests.cli.commands import run

from wiseale.cli import COMMANDS, group
from wiseale.config import TrainConfig

QUICK = ["--network", "mlp:hidden=8", "--max-epochs", "1", "--batch-size", "8", "--no-figures"]


def refused(capsys, *arguments):
    """The one line a wrong command answers with."""
    code, out, err = run(capsys, *arguments)
    assert code == 2, out + err
    assert out == ""
    assert err.count("\n") == 1, err
    assert err.startswith("wiseale: error: ")
    return err


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.npy"
    np.save(path, np.random.default_rng(0).normal(size=(60, 5)))
    return path


def test_help_is_quick_and_light():
    code = (
        "import sys, wiseale.cli\n"
        "try: wiseale.cli.main(['--help'])\n"
        "except SystemExit: print([m for m in ('torch', 'numpy', 'sklearn', 'rich', 'matplotlib') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("[]\n")
    assert all(name in shown for name in COMMANDS)
    before = os.times()
    subprocess.run([sys.executable, "-m", "wiseale", "--help"], capture_output=True, check=True)
    after = os.times()  # the processor's seconds: other programs on the machine do not count
    assert after.children_user - before.children_user + after.children_system - before.children_system < 0.3


def test_importing_wiseale_does_not_import_torch():
    subprocess.run([sys.executable, "-c", "import sys, wiseale; assert 'torch' not in sys.modules"], check=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_without_torch(name):
    code = (
        f"import sys, wiseale.cli\ntry: wiseale.cli.main(['{name}', '--help'])\nfinally: print('torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.endswith("False\n")
    assert "Usage: wiseale" in shown


def test_every_setting_is_an_option_of_train():
    options = {option for p in group.get_command(None, "train").params for option in p.opts}
    for field in dataclasses.fields(TrainConfig):
        assert field.name == "data" or f"--{field.name.replace('_', '-')}" in options


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--objective", "wise_alle"], "unknown objective 'wise_alle': did you mean 'wise_ale'?"),
        (["--network", "mpl"], "did you mean 'mlp'"),
        (["--likelihood", "gausian"], "did you mean 'gaussian'"),
        (["--latent-dim", "0"], "--latent-dim must be at least 1, got 0"),
        (["--latent-dim", "two"], "--latent-dim must be a whole number or none, got 'two'"),
        (["--batch-size", "64"], "--batch-size must be at most the 54 training rows, got 64"),
        (["--batch-size", "1"], "--batch-size must be at least 2, got 1"),
        (["--lr", "0"], "--lr must be above 0"),
        (["--lr", "nan"], "--lr must be finite"),
        (["--held-out", "1"], "--held-out must be below 1"),
        (["--held-out", "0", "--patience", "3"], "--patience needs held-out rows"),
        (["--device", "warp"], "--device 'warp' cannot be used here"),
        (["--precision", "fp8"], "--precision must be 'fp32' or 'bf16', got 'fp8'"),
        (["--latentdim", "3"], "No such option"),
        (["--network", "conv2d"], "network conv2d needs images"),
    ],
)
def test_wrong_options_are_refused_in_one_line(capsys, table, tmp_path, arguments, message):
    assert message in refused(capsys, "train", table, *arguments, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_bf16_trains_or_is_refused_in_one_line(table, tmp_path):
    """Some virtual machines announce instructions for bfloat16 that they do not run: torch then ends the process."""
    arguments = ["train", table, "--precision", "bf16", "--max-epochs", "1", "--out", tmp_path / "run"]
    done = subprocess.run([sys.executable, "-m", "wiseale", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0 or (done.returncode == 2 and "--precision bf16 does not work here" in done.stderr)


def test_bf16_that_ends_the_process_is_refused(capsys, table, tmp_path, monkeypatch):
    monkeypatch.setattr("wiseale.training.plan.sys.executable", shutil.which("false"))
    error = refused(capsys, "train", table, "--precision", "bf16", "--out", tmp_path / "run")
    assert "--precision bf16 does not work here" in error
    assert not (tmp_path / "run").exists()


def test_unknown_command_and_dataset(capsys, tmp_path):
    assert "No such command 'trian'" in refused(capsys, "trian")
    assert "did you mean 'sine'" in refused(capsys, "train", "sines", "--out", tmp_path / "run")
    assert "no data given" in refused(capsys, "train", "--out", tmp_path / "run")
    assert "no file" in refused(capsys, "train", "missing.npy", "--out", tmp_path / "run")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.where(np.arange(60).reshape(12, 1, 5) == 38, np.nan, 1.0), "row 7"),
        (np.where(np.arange(60).reshape(12, 5) == 38, np.inf, 1.0), "row 7"),
        (np.ones((12, 5), complex), "complex"),
        (np.array([["a", "b"]] * 5), "<U1"),
        (np.empty((0, 4)), "no rows"),
        (np.ones(7), "has the shape (7,)"),
    ],
)
def test_data_that_cannot_be_used(capsys, tmp_path, array, message):
    path = tmp_path / "bad.npy"
    np.save(path, array)
    assert message in refused(capsys, "train", path, *QUICK, "--out", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_empty_file(capsys, tmp_path):
    (tmp_path / "empty.npy").touch()
    assert "empty.npy" in refused(capsys, "train", tmp_path / "empty.npy", "--out", tmp_path / "run")


def test_the_output_must_be_new_and_writable(capsys, table, tmp_path):
    existing = tmp_path / "notes"
    existing.mkdir()
    (existing / "keep.txt").write_text("mine")
    assert "exists" in refused(capsys, "train", table, *QUICK, "--out", existing)
    assert (existing / "keep.txt").read_text() == "mine"
    file = tmp_path / "file"
    file.write_text("mine")
    assert "not a directory" in refused(capsys, "train", table, *QUICK, "--out", file / "run")
    assert "cannot write" in refused(capsys, "train", table, *QUICK, "--out", "/proc/wiseale/run")


def test_train_resume_evaluate(capsys, table, tmp_path):
    out = tmp_path / "run"
    code, shown, _ = run(capsys, "train", table, *QUICK, "--objective", "wise_ale:prior_weight=paper", "--out", out)
    assert code == 0
    assert "effective prior weight 0.125" in shown
    assert "finished" in shown
    assert json.loads((out / "config.json").read_text())["resolved"]["prior_weight"] == 1 / 8
    assert json.loads((out / "config.json").read_text())["data"] == str(table)
    assert "continue it with `wiseale resume`" in refused(capsys, "train", table, *QUICK, "--out", out)
    assert run(capsys, "resume", out)[0] == 0
    code, shown, _ = run(capsys, "evaluate", out, "--json", "--no-figures")
    assert code == 0
    told = json.loads(shown)
    assert told == json.loads((out / "evaluation.json").read_text())
    assert told["split"] == "held out"
    assert told["n_eval"] == 6


def test_evaluate_refuses_changed_data_and_unfinished_runs(capsys, table, tmp_path):
    out = tmp_path / "run"
    run(capsys, "train", table, *QUICK, "--out", out)
    np.save(table, np.ones((60, 5)) * np.arange(60)[:, None])
    assert "has changed" in refused(capsys, "evaluate", out)
    assert run(capsys, "evaluate", out, "--data", table)[0] == 0
    assert "not a run directory" in refused(capsys, "evaluate", tmp_path)
    (out / "model").rename(tmp_path / "elsewhere")
    assert "has not finished" in refused(capsys, "evaluate", out)
    assert "its content has changed" in refused(capsys, "resume", out)
    np.save(tmp_path / "wide.npy", np.random.default_rng(0).normal(size=(9, 6)))
    (tmp_path / "elsewhere").rename(out / "model")
    assert "has rows of shape (6,), the model takes (5,)" in refused(
        capsys, "evaluate", out, "--data", tmp_path / "wide.npy"
    )


def test_a_comparison_from_a_file_alone(capsys, table, tmp_path):
    """A command's own options stand in the file beside the settings of training; those given on the line win."""
    toml = tmp_path / "comparison.toml"
    toml.write_text(
        f'data = "{table}"\nobjectives = ["aevb", "wise_ale"]\nseeds = 3\nevaluate-rows = 20\nout = "{tmp_path}/out"\n'
        'max_epochs = 1\nbatch_size = 8\nlatent_dim = 2\nnetwork = "mlp:hidden=8"\n'
    )
    assert "--array=1-6" in run(capsys, "compare", "--config", toml, "--print-jobs")[1]
    assert "--array=1-2" in run(capsys, "compare", "--config", toml, "--print-jobs", "--seeds", "1")[1]
    toml.write_text(toml.read_text().replace("seeds = 3", "seeds = 0"))
    assert "--seeds" in refused(capsys, "compare", "--config", toml)
    toml.write_text("seedz = 3\n")
    message = refused(capsys, "compare", table, "--objectives", "aevb", "--config", toml, "--out", tmp_path / "other")
    assert "comparison.toml: seedz is not a setting" in message


def test_settings_from_files(capsys, table, tmp_path):
    toml = tmp_path / "run.toml"
    toml.write_text(f'data = "{table}"\nlatent-dim = 3\nmax_epochs = 1\nbatch_size = 8\nnetwork = "mlp:hidden=8"\n')
    assert run(capsys, "train", "--config", toml, "--latent-dim", "2", "--out", tmp_path / "run")[0] == 0
    assert json.loads((tmp_path / "run" / "config.json").read_text())["latent_dim"] == 2
    toml.write_text("latent_dims = 3\n")
    message = refused(capsys, "train", table, "--config", toml, "--out", tmp_path / "other")
    assert "run.toml: latent_dims is not a setting" in message
    assert "did you mean 'latent_dim'?" in message
    toml.write_text("latent_dim = 0\n")
    message = refused(capsys, "train", table, "--config", toml, "--out", tmp_path / "other")
    assert "run.toml: latent_dim must be at least 1, got 0" in message
    toml.write_text("latent_dim = \n")
    assert "is not valid TOML" in refused(capsys, "train", table, "--config", toml, "--out", tmp_path / "other")
    assert "cannot read" in refused(capsys, "train", table, "--config", tmp_path / "no.toml", "--out", tmp_path / "o")


def test_divergence_keeps_the_last_good_checkpoint(capsys, table, tmp_path):
    out = tmp_path / "run"
    arguments = [*QUICK, "--max-epochs", "50", "--lr", "1e30", "--checkpoint-every", "1", "--out", out]
    code, _, err = run(capsys, "train", table, *arguments)
    assert code == 2
    assert "training diverged at step" in err
    assert "try a lower --lr, --max-grad-norm 1" in err
    assert "the last good checkpoint is" in err
    assert err.count("\n") == 1
    assert not (out / "model").exists()

"""Full disks, missing permissions, closed pipes, signals: one line, the right exit code, and what was saved stays."""

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from tests.cli.commands import run
from tests.processes.processes import finish, newest_step, wiseale

from wiseale.cli.faults import fault_in_words, one_line
from wiseale.errors import WiseAleError
from wiseale.models import model_file
from wiseale.platform import machine

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX limits and signals")

SMALL = ("--network", "mlp:hidden=4", "--batch-size", "8", "--threads", "1", "--checkpoint-every", "5")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "table.csv"
    rows = np.random.default_rng(0).normal(size=(60, 3))
    np.savetxt(path, rows, delimiter=",", header="a,b,c", comments="")
    return path


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "run"
    finish(wiseale("train", data, *SMALL, "--max-epochs", 2, "--out", path))
    finish(wiseale("evaluate", path))
    return path


def one_error(code, err):
    assert code == 2, err
    (line,) = [line for line in err.splitlines() if line.startswith("wiseale: error: ")]
    assert "Traceback" not in err
    return line


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "model.safetensors")


@pytest.mark.long
@pytest.mark.parametrize("command", ["train", "evaluate", "report", "export", "data info"])
def test_a_full_disk_is_one_line(command, data, trained, tmp_path, capsys, monkeypatch):
    arguments = {
        "train": ("train", data, *SMALL, "--max-epochs", 1, "--out", tmp_path / "run"),
        "evaluate": ("evaluate", trained),
        "report": ("report", trained),
        "export": ("export", trained, "--format", "model", "-o", tmp_path / "model"),
        "data info": ("data", "info", data, "-o", tmp_path / "x.png"),
    }[command]
    before = {path: path.read_bytes() for path in trained.rglob("*") if path.is_file()}
    monkeypatch.setattr("wiseale.platform.atomic_files.sync", no_space)
    code, _, err = run(capsys, *arguments)
    assert "space" in one_error(code, err)
    assert {path: path.read_bytes() for path in before} == before
    assert not [path for folder in (tmp_path, trained) for path in folder.rglob("*.partial-*")]


@pytest.mark.long
@posix
def test_a_checkpoint_that_cannot_be_written_leaves_the_one_before(data, tmp_path):
    """SafetensorError is no OSError: under a limit on file sizes its writer fails as on a full disk."""
    import resource

    path = tmp_path / "run"
    arguments = ("train", data, *SMALL, "--max-epochs", 40, "--out", path)
    process = wiseale(*arguments)
    while newest_step(path) < 5:
        time.sleep(0.01)
        assert process.poll() is None
    smallest = min(file.stat().st_size for file in path.glob("checkpoints/*/weights.safetensors"))
    process.send_signal(signal.SIGTERM)
    finish(process, 143)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (smallest - 1, smallest - 1))

    before = newest_step(path)
    output = finish(wiseale("resume", path, preexec_fn=limit), code=2)
    assert "Traceback" not in output
    assert output.splitlines()[-1].startswith("wiseale: error: ")
    assert "ulimit -f" in output
    assert newest_step(path) == before
    assert not list(path.rglob("*.partial-*"))
    finish(wiseale("resume", path))


def test_an_error_of_the_safetensors_writer_is_an_os_error(tmp_path, monkeypatch):
    def fail(*_):
        raise model_file.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(model_file, "save_arrays", fail)
    with pytest.raises(OSError, match="No space left") as error:
        model_file.write_tensors(tmp_path / "x", {})
    assert error.value.errno == errno.ENOSPC


def test_faults_in_words():
    assert fault_in_words(OSError(errno.EACCES, "Permission denied", "x")) == (
        "x: Permission denied; change its permissions, or choose another place"
    )
    assert "not enough memory" in fault_in_words(MemoryError())
    assert "not enough memory" in fault_in_words(
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
    )
    assert fault_in_words(RuntimeError("a bug")) is None
    assert fault_in_words(ValueError("a bug")) is None


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    path = tmp_path / "table.csv"
    path.write_text("a\x1b[31m,b,c\x9b2J\n" + "1,1,1\n" * 5 + "2,x,1\n")
    code, out, err = run(capsys, "train", path, "--out", tmp_path / "run")
    one_error(code, err)
    code, out, err = run(capsys, "train", f"{path}:columns=q", "--out", tmp_path / "run")
    assert "a?[31m" in one_error(code, err)
    path.write_text("a\x1b[31m,b\n" + "1,1\n" * 20 + "1,2\n")  # a constant column, which is named when training starts
    code, out, err = run(capsys, "train", path, *SMALL, "--max-epochs", 1, "--no-figures", "--out", tmp_path / "run")
    assert code == 0
    assert "constant column: a?[31m" in out
    assert not {"\x1b", "\x9b"} & set(out + err)
    assert one_line("a\tb\nc\x7f") == "a b c?"


def test_a_warning_is_one_line_without_control_characters(tmp_path):
    """Matplotlib warns of letters that its font lacks, and prints them."""
    path = tmp_path / "table.csv"
    path.write_text("\x1b[31ma,b\n" + "1,2\n3,1\n" * 10)
    output = finish(wiseale("data", "info", path, "-o", tmp_path / "x.png"))
    assert [line for line in output.splitlines() if line.startswith("wiseale: warning: Glyph 27 (?) missing")]
    assert "\x1b" not in output
    assert "savefig" not in output  # Python's own second line shows the source


@pytest.mark.parametrize(
    "options",
    [
        ("--latent-dim", "1000000000"),
        ("--latent-dim", "1" + "0" * 40),
        ("--network", "mlp:hidden=100000000000"),
        ("--threads", "100000"),
        ("--processes", "100000"),
        ("--batch-size", "9" * 30),
        ("--seed", "9" * 30),
        ("--out", "x" * 300),
    ],
)
def test_huge_settings_are_one_line(data, tmp_path, capsys, options):
    one_error(*run(capsys, "train", data, "--out", tmp_path / "run", *options)[::2])


def test_a_huge_dataset_is_one_line(tmp_path, capsys):
    assert "GB of memory" in one_error(*run(capsys, "train", "sine:n=10000000000", "--out", tmp_path / "run")[::2])


def test_memory_is_asked_for_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: 10**9)
    machine.require_memory(10**9, "x", "y")
    with pytest.raises(WiseAleError, match=r"^x .*2.0 GB.*1.0 GB.*: y$"):
        machine.require_memory(2 * 10**9, "x", "y")
    monkeypatch.setattr(machine, "available_memory_bytes", lambda: None)
    machine.require_memory(10**30, "x", "y")


def test_a_rank_without_an_address_is_one_line(data, tmp_path, capsys, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    for name in ("MASTER_ADDR", "MASTER_PORT", "WISEALE_STORE"):
        monkeypatch.delenv(name, raising=False)
    code, _, err = run(capsys, "train", data, "--batch-size", 8, "--out", tmp_path / "run")
    assert "MASTER_ADDR" in one_error(code, err)


@posix
@pytest.mark.long
def test_training_whose_output_nobody_reads_is_saved_and_can_be_resumed(data, tmp_path):
    path = tmp_path / "run"
    words = [sys.executable, "-m", "wiseale", "train", data, *SMALL, "--max-epochs", "500", "--out", path]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        process.stdout.close()  # as `| head -1` does
        err = process.stderr.read()
    assert process.returncode == 128 + signal.SIGPIPE
    assert err == f"interrupted; continue with: wiseale resume {path}\n"
    assert newest_step(path) > 0


@posix
@pytest.mark.long
def test_a_hang_up_saves_unless_it_is_ignored(data, tmp_path):
    arguments = ("train", data, *SMALL, "--max-epochs", 60)
    for number, (name, ignore) in enumerate([("heeded", signal.SIG_DFL), ("ignored", signal.SIG_IGN)]):
        path = tmp_path / name
        process = wiseale(*arguments, "--out", path, preexec_fn=lambda how=ignore: signal.signal(signal.SIGHUP, how))
        while newest_step(path) < 5:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        output = finish(process, (129, 0)[number])
        assert ("wiseale resume" in output) == (name == "heeded")


@posix
def test_closed_output_and_interrupted_start(data, tmp_path):
    script = f'"{sys.executable}" -m wiseale info >&-'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    process = wiseale("evaluate", tmp_path)  # importing torch takes longer than this
    time.sleep(0.8)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert "Traceback" not in output
    assert len(output.split("\n")) <= 3  # click begins a new line after ^C
    assert output.strip().count("\n") == 0


@posix
def test_an_interrupt_that_an_import_drops_ends_the_command(tmp_path):
    """Torch drops it while it imports numpy, and numpy fails later; a module in torch's place does the same."""
    torch = (
        "import contextlib, signal",
        "with contextlib.suppress(KeyboardInterrupt): signal.raise_signal(signal.SIGINT)",
        "raise RecursionError",
    )
    (tmp_path / "torch.py").write_text("\n".join(torch))
    command = [sys.executable, "-m", "wiseale", "evaluate", str(tmp_path)]
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "wiseale: interrupted\n")


@posix
@pytest.mark.long
def test_a_terminated_comparison_ends_with_143(data, tmp_path):
    out = tmp_path / "comparison"
    arguments = ("compare", data, "--objectives", "aevb", "--seeds", 1, *SMALL, "--max-epochs", 5000, "--out", out)
    process = wiseale(*arguments)
    while not list(out.glob("runs/*/*/checkpoints/*")):
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert "wiseale: interrupted" in finish(process, 143)

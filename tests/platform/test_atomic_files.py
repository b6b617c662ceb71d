"""Files appear whole or not at all, whoever else writes and whenever the process is killed."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from wiseale.platform import atomic_files
from wiseale.platform.atomic_files import clear_leftovers, replacing, temporary_sibling, write_directory, write_text

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="POSIX signals")


def fill(content):
    return lambda folder: (folder / "file").write_text(content)


def test_three_writers_and_no_torn_read(tmp_path):
    """With one temporary name for all, a writer renamed what another was still writing."""
    path, faults, until = tmp_path / "file.json", [], time.monotonic() + 1.0
    write_text(path, "[]")

    def write(length):
        while time.monotonic() < until:
            try:
                write_text(path, json.dumps(["x" * length]))
            except OSError as error:
                faults.append(error)

    writers = [threading.Thread(target=write, args=(n,)) for n in (1, 50_000, 500_000)]
    for thread in writers:
        thread.start()
    while time.monotonic() < until:
        json.loads(path.read_text())
    for thread in writers:
        thread.join()
    assert faults == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


@pytest.mark.parametrize("function", ["sync", "replace"])
def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch, function):
    write_text(tmp_path / "file", "old")

    def fail(*_):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(atomic_files if function == "sync" else os, function, fail)
    with pytest.raises(OSError, match="no space"):
        write_text(tmp_path / "file", "new")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"file": "old"}


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2")
def test_a_directory_is_replaced_in_one_step(tmp_path, monkeypatch):
    """A kill between two renames left no directory at all: here the second one never comes."""
    write_directory(tmp_path / "model", fill("old"))
    monkeypatch.setattr(atomic_files.os, "rename", lambda *_: pytest.fail("renamed in two steps"))
    write_directory(tmp_path / "model", fill("new"))
    assert (tmp_path / "model" / "file").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_without_an_exchange_the_old_directory_comes_back_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
    write_directory(tmp_path / "model", fill("old"))
    rename, calls = os.rename, []

    def second_fails(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise OSError(errno.EIO, "bad disk")
        rename(source, target)

    monkeypatch.setattr(atomic_files.os, "rename", second_fails)
    with pytest.raises(OSError, match="bad disk"):
        write_directory(tmp_path / "model", fill("new"))
    assert (tmp_path / "model" / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@posix
def test_what_a_kill_left_is_removed_after_a_day_or_at_once_under_a_lock(tmp_path):
    script = (
        "import os, signal; from pathlib import Path; from wiseale.platform.atomic_files import write_directory\n"
        f"write_directory(Path({str(tmp_path / 'model')!r}), lambda f: os.kill(os.getpid(), signal.SIGKILL))"
    )
    killed = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    temporary_sibling(tmp_path / "model")  # another writer may still be at work: it is too young
    assert left.exists()
    os.utime(left, (0, 0))
    temporary_sibling(tmp_path / "other")  # another name
    assert left.exists()
    temporary_sibling(tmp_path / "model")
    assert not left.exists()
    (tmp_path / ".a.partial-1-2").touch()
    (tmp_path / "mine.partial-1").touch()
    clear_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.partial-1"]


def test_a_name_of_255_characters_can_be_written(tmp_path):
    with replacing(tmp_path / ("x" * 255)) as temporary:
        temporary.write_text("x")
    assert (tmp_path / ("x" * 255)).exists()

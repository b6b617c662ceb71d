"""The everyday commands where POSIX's modules and functions are missing, as on Windows; each system's folders."""

import ast
import json
import ntpath
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.processes.processes import at_the_end

from wiseale import load
from wiseale.cli import main
from wiseale.data import is_path
from wiseale.platform import folders

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SETTINGS = {
    "objective": "aevb",  # uses no compiled kernels: there is no compiler on the PATH of the other system
    "network": "mlp:hidden=16",
    "latent_dim": 2,
    "batch_size": 16,
    "max_epochs": 20,
    "checkpoint_every": 20,
    "threads": 1,
    "seed": 3,
}


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="it imitates Windows")
def test_everyday_commands_without_posix(tmp_path, capsys):
    """Interrupted and resumed there, a run ends with the bytes of a run that was not interrupted here."""
    np.save(tmp_path / "table.npy", np.random.default_rng(0).normal(size=(400, 3)))
    settings = SETTINGS | {"data": str(tmp_path / "table.npy")}
    (tmp_path / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    paths = [HERE / "without_posix", ROOT / "src", ROOT]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PATH": str(tmp_path)}
    there = subprocess.run(
        [sys.executable, HERE / "everyday_commands.py", tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert there.returncode == 0, there.stderr
    assert re.search(r"^kernels +not used: no C compiler", there.stdout, re.MULTILINE)

    with pytest.raises(SystemExit) as ended:
        main(["train", "--config", str(tmp_path / "settings.json"), "--out", str(tmp_path / "here")])
    assert ended.value.code == 0
    capsys.readouterr()
    different = {"environment.json", ".lock"}  # a lock of Windows goes with its holder
    found, expected = (
        {name: data for name, data in at_the_end(tmp_path / name).items() if name not in different}
        for name in ("run", "here")
    )
    assert found == expected
    timing = [json.loads(line) for line in (tmp_path / "run" / "timing.jsonl").read_text().splitlines()]
    assert {epoch["peak_memory_bytes"] for epoch in timing} == {None}
    with np.load(tmp_path / "codes.npz") as archive:
        codes = load(tmp_path / "here").transform(np.load(tmp_path / "table.npy"))
        np.testing.assert_allclose(archive["codes"], codes, atol=1e-6)


def test_modules_that_some_systems_lack_are_imported_by_platform_alone():
    source = ROOT / "src" / "wiseale"
    found = set()
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module] if isinstance(node, ast.ImportFrom) else []
            if {"fcntl", "resource", "msvcrt", "pwd", "grp", "termios", "winreg"} & {*imported}:
                found.add(path.relative_to(source).parts[0])
    assert found == {"platform"}


@pytest.mark.parametrize(
    ("system", "environment", "expected"),
    [
        ("linux", {}, ".cache/wiseale"),
        ("linux", {"XDG_CACHE_HOME": "{home}/xdg"}, "xdg/wiseale"),
        ("darwin", {}, "Library/Caches/wiseale"),
        ("darwin", {"XDG_CACHE_HOME": "{home}/xdg"}, "xdg/wiseale"),
        ("win32", {"LOCALAPPDATA": "{home}/AppData/Local"}, "AppData/Local/wiseale"),
        ("linux", {"WISEALE_CACHE": "~/mine"}, "mine"),
    ],
)
def test_the_cache_folder_of_each_system(system, environment, expected, tmp_path, monkeypatch):
    for name in ("WISEALE_CACHE", "WISEALE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(home=tmp_path))
    monkeypatch.setattr(sys, "platform", system)
    assert folders.cache_root() == tmp_path / expected
    assert folders.default_data_root() == tmp_path / expected / "data"


def test_a_path_may_begin_with_a_drive(monkeypatch):
    monkeypatch.setattr(os.path, "splitdrive", ntpath.splitdrive)
    monkeypatch.setattr(os, "sep", "\\")
    assert is_path(r"C:\missing.csv")
    assert not is_path("sine:n=20")

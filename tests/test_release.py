"""What is released: the same version everywhere, builds that repeat, a wheel that holds all it needs, completion."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from release.dist import build, sha256

import wiseale
from wiseale import registry

ROOT = Path(__file__).parents[1]


def test_the_version_is_said_once_and_repeated_right():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {wiseale.__version__}\n" in citation
    assert re.search(r"^## \[Unreleased\]", (ROOT / "CHANGELOG.md").read_text(), re.M)


@pytest.mark.long
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the repository: the build starts from a commit")
def test_two_builds_have_the_same_bytes_and_the_wheel_is_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    first, second = (build("HEAD", tmp_path / name) for name in ("first", "second"))
    assert [(path.name, sha256(path)) for path in first] == [(path.name, sha256(path)) for path in second]
    (wheel,) = (path for path in first if path.suffix == ".whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", "HEAD", "src"], capture_output=True, text=True, check=True
    )
    assert {name.removeprefix("src/") for name in tracked.stdout.splitlines()} <= names
    assert any(name.endswith("zoo.json") for name in names)
    assert not [name for name in names if not name.startswith(("wiseale/", "wiseale-"))]


def test_the_shell_completes_commands_and_options():
    def completed(words, number):
        asked = {"_WISEALE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        command = [sys.executable, "-c", "from wiseale.cli import main; main()"]
        ran = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=False)
        return {line.partition(",")[2] for line in ran.stdout.splitlines()}

    assert completed("wiseale expl", 1) == {"explore"}
    assert "--latent-dim" in completed("wiseale train --lat", 2)


def test_every_extra_that_a_message_names_can_be_installed():
    sources = [path.read_text(encoding="utf-8") for path in Path(wiseale.__file__).parent.rglob("*.py")]
    named = {name for text in sources for name in re.findall(r"wiseale\[(\w+)\]", text)}
    loggers = {registry.lookup("logger", name) for name in registry.names("logger")}
    named |= {logger.extra for logger in loggers if logger.package}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"explore", "onnx", "mlflow"} <= named <= set(extras)

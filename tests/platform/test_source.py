"""The commit that a run records is that of the package's own source, or nothing."""

import subprocess
from pathlib import Path

import pytest

from wiseale.platform.machine import source_commit


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", folder, *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    package = tmp_path / "src" / "wiseale"
    package.mkdir(parents=True)
    (package / "a.py").write_text("1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "tag", "-a", "v1", "-m", "a tag is not a commit")
    return tmp_path


def test_a_checkout_has_its_commit(checkout):
    package = checkout / "src" / "wiseale"
    commit = git(checkout, "rev-parse", "HEAD")
    assert commit.startswith(source_commit(package))
    assert len(source_commit(package)) >= 10
    (package / "a.py").write_text("2\n")
    assert source_commit(package) == f"{commit[:10]}-dirty"


def test_an_installed_package_inside_a_repository_has_none(checkout):
    installed = checkout / ".venv" / "lib" / "site-packages" / "wiseale"
    installed.mkdir(parents=True)
    assert source_commit(installed) is None

"""The lock file of a release agrees with the tested versions and names no address."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"([a-z0-9.-]+)==(\S+) --hash=sha256:([0-9a-f]{64})")


def versions(path, pattern):
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
    matches = [pattern.fullmatch(line.split(" ;")[0]) for line in lines]
    assert all(matches), lines
    return {match[1].lower().replace("_", "-"): match[2] for match in matches}


def test_every_line_is_a_tested_version_with_a_checksum():
    locked = versions(ROOT / "requirements.lock", LINE)
    tested = versions(ROOT / "constraints.txt", re.compile(r"([A-Za-z0-9._-]+)==(\S+)()"))
    assert {name: tested.get(name) for name in locked} == locked
    assert "torch" not in locked
    assert "/" not in re.sub(r"#.*", "", (ROOT / "requirements.lock").read_text())


def test_it_lists_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *(word for extra in ("explore", "logging", "onnx") for word in project["optional-dependencies"][extra]),
    ]
    names = {re.split(r"[<>=!\[ ]", word)[0].lower() for word in needed} - {"torch"}
    assert names <= versions(ROOT / "requirements.lock", LINE).keys()


def test_the_build_backend_is_pinned():
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert all(re.fullmatch(r"[a-z]+==[0-9.]+", word) for word in requires)


@pytest.mark.skipif(sys.platform != "linux", reason="the lock file is for Linux")
def test_pip_reports_become_lines():
    from release.lock import lock

    item = {
        "metadata": {"name": "An_Example", "version": "1.2"},
        "download_info": {"archive_info": {"hashes": {"sha256": "ab"}}},
    }
    torch = {"metadata": {"name": "torch", "version": "2.13.0+cpu"}}
    text = lock({"install": [torch, item]})
    assert text.endswith("\nan-example==1.2 --hash=sha256:ab\n")
    assert "torch==" not in text

"""``python -m release.lock``: write ``requirements.lock``, the tested versions with the SHA-256 of each file.

pip resolves the package with its extras through ``constraints.txt`` and reports the files it would install; nothing is
installed. torch is left out: its builds for CPU and GPU share a version and differ in their files, and which of them is
right depends on the machine; install it first, from the channel of your choice.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

EXTRAS = "explore,logging,onnx"
LEFT_OUT = ("wiseale", "torch")


def main() -> None:
    """Write the lock file."""
    parser = argparse.ArgumentParser(prog="release.lock", description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=Path("requirements.lock"))
    parser.add_argument("--report", type=Path, help="a report of `pip install --report`, instead of asking pip")
    asked = parser.parse_args()
    asked.out.write_text(lock(json.loads(asked.report.read_text()) if asked.report else ask_pip()), encoding="utf-8")


def ask_pip() -> dict[str, Any]:
    """What pip would install for the package and its extras in an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = ("install", "--dry-run", "--ignore-installed", "--quiet", "--report", str(report))
        subprocess.run(
            [sys.executable, "-m", "pip", *words, "-c", "constraints.txt", f".[{EXTRAS}]"],
            check=True,
        )
        found: dict[str, Any] = json.loads(report.read_text())
    return found


def lock(report: dict[str, Any]) -> str:
    """The lock file's text: a line for each package, with the checksum of its file and no address."""
    lines = []
    for item in report["install"]:
        name, version = item["metadata"]["name"].lower().replace("_", "-"), item["metadata"]["version"]
        if name not in LEFT_OUT:
            lines.append(f"{name}=={version} --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}")
    python = ".".join(platform.python_version_tuple()[:2])
    torch = next(item["metadata"]["version"] for item in report["install"] if item["metadata"]["name"] == "torch")
    head = f"""\
# Made by `make lock` from constraints.txt, for Python {python} on {platform.system()} {platform.machine()}. Use:
#   pip install -c constraints.txt torch                          # {torch} is tested; choose your build of it
#   pip install --require-hashes --no-deps -r requirements.lock
#   pip install --no-deps wiseale
# torch is not listed: its CPU and GPU builds are different files of one version.
"""
    return head + "".join(f"{line}\n" for line in sorted(lines))


if __name__ == "__main__":
    main()

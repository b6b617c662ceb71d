"""``python -m release.dist``: build sdist and wheel twice from the committed files and refuse a difference.

Each build starts from its own copy of the commit in a folder of its own, with the commit's time as SOURCE_DATE_EPOCH;
the wheel is built from the sdist, as pip does it. What is built goes to ``dist/`` with a file of SHA-256 sums.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

MOST_BYTES = 8_000_000  # of the wheel


def main() -> None:
    """Build, compare, keep."""
    parser = argparse.ArgumentParser(prog="release.dist", description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=Path("dist"))
    parser.add_argument("--commit", default="HEAD")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        built = [build(asked.commit, Path(folder) / name) for name in ("first", "second")]
        sums = [{path.name: sha256(path) for path in paths} for paths in built]
        if sums[0] != sums[1]:
            raise SystemExit(f"two builds of {asked.commit} differ: {sums}")
        shutil.rmtree(asked.out, ignore_errors=True)
        asked.out.mkdir(parents=True)
        for path in built[0]:
            shutil.copy(path, asked.out)
            if path.stat().st_size > MOST_BYTES:
                raise SystemExit(
                    f"{path.name} has {path.stat().st_size:,} bytes, at most {MOST_BYTES:,} are meant to be"
                )
    lines = [f"{digest}  {name}" for name, digest in sums[0].items()]
    (asked.out / "SHA256SUMS").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("built twice, same bytes:", *lines, sep="\n")


def build(commit: str, folder: Path) -> list[Path]:
    """The sdist and the wheel of a commit, built in a folder of its own."""
    source, out = folder / "source", folder / "dist"
    archive = _git("archive", "--format=tar", commit)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(source, filter="data")
    environment = os.environ | {"SOURCE_DATE_EPOCH": _git("log", "-1", "--format=%ct", commit).decode().strip()}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return sorted(out.iterdir())


def sha256(path: Path) -> str:
    """The checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


if __name__ == "__main__":
    main()

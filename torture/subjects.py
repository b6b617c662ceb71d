"""What is attacked: one small run, finished and interrupted, its model, a packed dataset and a comparison."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from torture.attempts import command

TRAIN = (
    *("--network", "mlp:hidden=8", "--latent-dim", "2", "--batch-size", "8", "--max-epochs", "4"),
    *("--checkpoint-every", "9", "--threads", "1", "--patience", "3", "--seed", "3", "--no-figures"),
)
COMPARE = ("--seeds", "1", "--network", "mlp:hidden=8", "--max-epochs", "1", "--workers", "1")
_CHANGING = ("timing.jsonl", "evaluation.json", ".lock")


@dataclass(frozen=True)
class Subjects:
    """Paths of everything under attack; never changed, only copied."""

    folder: Path

    @property
    def table(self) -> Path:
        """A CSV file of 60 rows."""
        return self.folder / "table.csv"

    @property
    def holes(self) -> Path:
        """The same table with some cells missing."""
        return self.folder / "holes.csv"

    @property
    def run(self) -> Path:
        """A finished and evaluated run on the table."""
        return self.folder / "run"

    @property
    def interrupted(self) -> Path:
        """The same run, stopped after its second checkpoint."""
        return self.folder / "interrupted"

    @property
    def images(self) -> Path:
        """A folder of images, and with it a pack in the cache."""
        return self.folder / "images"

    @property
    def cache(self) -> Path:
        """The cache folder; $WISEALE_CACHE must be set to it."""
        return self.folder / "cache"

    def copy(self, source: Path, target: Path) -> Path:
        """A copy that may be damaged."""
        return Path(shutil.copytree(source, target))


def make_subjects(folder: Path) -> Subjects:
    """Make what is missing of the subjects; all of them where they were made by another version of the source."""
    subjects, made_by = Subjects(folder), folder / "source.txt"
    if made_by.exists() and made_by.read_text() != _source():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made_by.write_text(_source())
    if subjects.images.exists():
        return subjects
    draws = np.random.default_rng(0)
    rows = draws.normal(size=(60, 3)).round(3)
    subjects.table.write_text("a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
    rows[::7, 1] = np.nan
    text = "".join(",".join("" if np.isnan(cell) else str(cell) for cell in row) + "\n" for row in rows)
    subjects.holes.write_text("a,b,c\n" + text)
    _must("train", subjects.table, *TRAIN, "--out", subjects.run, folder=folder)
    shutil.copytree(subjects.run, subjects.interrupted)
    shutil.rmtree(subjects.interrupted / "model")
    newest = max((subjects.interrupted / "checkpoints").iterdir())
    shutil.rmtree(newest)
    _must("evaluate", subjects.run, "--no-figures", folder=folder)
    _make_images(subjects.folder / "images.new", draws)
    (subjects.folder / "images.new").rename(subjects.images)
    _must("data", "pack", f"{subjects.images}:size=16", folder=folder)
    return subjects


def _source() -> str:
    """A checksum of the package's source."""
    import wiseale

    digest = hashlib.sha256()
    for path in sorted(Path(wiseale.__path__[0]).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _make_images(folder: Path, draws: np.random.Generator) -> None:
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for number in range(12):
        Image.fromarray(draws.integers(0, 256, (16, 16, 3), np.uint8)).save(folder / f"{number:02d}.png")


def _must(*arguments: object, folder: Path) -> None:
    ending = command(*arguments, folder=folder)
    if ending.code != 0:
        raise RuntimeError(f"{arguments}: {ending}")


def content(run: Path) -> dict[str, bytes]:
    """Every byte of a run but what differs from time to time.

    Only the newest checkpoint counts: one that is due while another is being written is left out.
    """
    newest = max((path for path in run.glob("checkpoints/*") if path.name.isdecimal()), default=None)
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name not in _CHANGING]
    kept = [path for path in files if "checkpoints" not in path.parts or newest in path.parents]
    return {str(path.relative_to(run)): path.read_bytes() for path in kept}


def difference(found: dict[str, bytes], whole: dict[str, bytes]) -> str | None:
    """The files that are not the same, in words; None where all are."""
    names = sorted(name for name in found.keys() | whole.keys() if found.get(name) != whole.get(name))
    return f"other bytes in {names[:4]}" if names else None


def leftovers(folder: Path) -> list[str]:
    """Temporary files that somebody forgot."""
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if ".partial" in path.name]

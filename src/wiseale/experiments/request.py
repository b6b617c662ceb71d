"""The file that says what a directory is for: a comparison, a search or a reproduction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from wiseale.config import TrainConfig
from wiseale.data import Dataset
from wiseale.data.shared import shared
from wiseale.errors import RunError, WiseAleError
from wiseale.platform.atomic_files import is_temporary, write_text
from wiseale.platform.folders import default_data_root


@contextmanager
def reading(path: Path, again: str) -> Iterator[None]:
    """Inside, whatever is wrong with the file is an error that names it; ``again`` is how to do without it."""
    try:
        yield
    except (OSError, ValueError, TypeError, WiseAleError) as error:
        raise RunError(f"cannot read {path}: {error}; restore it, or {again} into another --out") from None


def write_request(path: Path, text: str) -> None:
    """Write the file, making its directory."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from None


def refuse_other_files(out: Path, what: str) -> None:
    """A directory with files but without the file that says it is for this is refused."""
    if out.exists() and any(not is_temporary(path) for path in out.iterdir()):
        raise RunError(f"{out} is not empty and holds no {what}: choose another --out")


def shared_data(base: TrainConfig, dataset: Dataset, out: Path) -> AbstractContextManager[None]:
    """Inside, the runs under ``out`` and its figures read this dataset instead of parsing the user's file again."""
    root = Path(base.data_root) if base.data_root else default_data_root()
    return shared(dataset, base.data, root, out / ".data")

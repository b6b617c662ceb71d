"""A data argument that is the name of a dataset and of a folder at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wiseale import registry
from wiseale.data.images.listing import holds_images

# Of runs and models, of `compare`, of `reproduce`.
_WRITTEN_BY_US = ("config.json", "comparison.json", "reproduction.json")


@dataclass(frozen=True)
class Named:
    """The data that a word on the command line stands for.

    Attributes:
        spec: a dataset or a path, as :func:`~wiseale.data.load_dataset` takes it.
        note: one line to show where the word could also stand for something else.
    """

    spec: str
    note: str | None = None


def named_data(word: str) -> Named:
    """The data that somebody means who types this word.

    A bare name of a dataset means a folder of that name only where the folder can be read as data: it holds images,
    and it is not a directory of results, whose figures are images too. With settings (``sine:n=500``) or a colon alone
    (``sine:``) it is always the dataset; with a path separator (``./sine``) always the folder.
    """
    folder = Path(word)
    if word not in registry.DATASETS or not folder.is_dir():
        return Named(word)
    if any((folder / name).exists() for name in _WRITTEN_BY_US) or not holds_images(folder):
        return Named(word)
    note = f"{word} is read as the folder of images here: write `{word}:` for the dataset, ./{word} for the folder"
    return Named(str(folder.absolute()), note)

"""Where a model is: a directory, or a name such as ``zoo:mnist-wise_ale`` or ``hf://owner/name``."""

from __future__ import annotations

import os
from pathlib import Path

ZOO, HUB = "zoo:", "hf://"


def locate(place: str | os.PathLike[str]) -> Path:
    """The directory that holds the model."""
    text = os.fspath(place)
    if text.startswith(ZOO):
        from wiseale.models.zoo import zoo_path

        return zoo_path(text.removeprefix(ZOO))
    if text.startswith(HUB):
        from wiseale.models.hub import download

        return download(text)
    return Path(text).expanduser()

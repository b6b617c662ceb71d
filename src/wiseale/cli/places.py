"""The argument that names a model: a directory, or a name such as ``zoo:mnist-wise_ale`` or ``hf://owner/name``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wiseale.models.places import locate


class ModelPlace(click.ParamType[Path]):
    """Reads a model's place as the directory it is in."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The directory; what is wrong with a name is an error of its own."""
        return value if isinstance(value, Path) else locate(value)


MODEL = ModelPlace()

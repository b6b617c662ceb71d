"""The page, its style and its script, read from the package once; the server finds them by name, never on disk."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from wiseale.explorer.one_script import one_script

SCRIPT = "explorer.js"
"""The name of the script that all modules are joined to."""


@dataclass(frozen=True)
class Asset:
    """A file of the page."""

    text: str
    media_type: str


def load_assets() -> dict[str, Asset]:
    """The files by name; the modules in ``static`` as one script."""
    texts = read_static()
    return {
        "index.html": Asset(texts["index.html"], "text/html; charset=utf-8"),
        "style.css": Asset(texts["style.css"], "text/css; charset=utf-8"),
        SCRIPT: Asset(one_script(texts), "text/javascript; charset=utf-8"),
    }


def read_static() -> dict[str, str]:
    """The text of every file in ``static``, by name."""
    folder = files("wiseale.explorer").joinpath("static")
    suffixes = (".html", ".css", ".js")
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(suffixes)}

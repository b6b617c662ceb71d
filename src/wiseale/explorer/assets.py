"""The page's own files, read from the package once; the server finds them by name in a dictionary, never on disk."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}


@dataclass(frozen=True)
class Asset:
    """A file of the page."""

    text: str
    media_type: str


def load_assets() -> dict[str, Asset]:
    """Every file in ``static``, by name."""
    found = {}
    for entry in files("wiseale.explorer").joinpath("static").iterdir():
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in _TYPES:
            found[entry.name] = Asset(entry.read_text(encoding="utf-8"), _TYPES[suffix])
    return found

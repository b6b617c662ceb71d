"""The page, its style and its script, read from the package once; the server finds them by name, never on disk.

The ES modules are joined to one script: browsers refuse to import modules over ``file://``, module addresses made of
data: or blob: cannot import each other by relative names, and from a server thirty small files take thirty requests
before the first point is drawn. So each module becomes a function that returns its exports, in the order of imports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files

SCRIPT = "explorer.js"
"""The name of the script that all modules are joined to."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.M)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.M)


def load_assets() -> dict[str, str]:
    """The texts of the page's files by name; the modules in ``static`` as one script."""
    texts = read_static()
    return {"index.html": texts["index.html"], "style.css": texts["style.css"], SCRIPT: one_script(texts)}


def read_static() -> dict[str, str]:
    """The text of every file in ``static``, by name."""
    folder = files("wiseale.explorer").joinpath("static")
    suffixes = (".html", ".css", ".js")
    return {one.name: one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(suffixes)}


def one_script(modules: Mapping[str, str], start: str = "main.js") -> str:
    """All modules that ``start`` needs in one script, each after those it imports."""
    functions: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import each other: {' → '.join((*importers, name))}")
        if name in functions:
            return
        text = modules[name]
        for match in _IMPORT.finditer(text):
            add(match[2], (*importers, name))
        functions[name] = _as_function(name, text)

    add(start, ())
    return "\n".join(functions.values())


def _as_function(name: str, text: str) -> str:
    exported = _EXPORT.findall(text)
    body = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_variable(match[2])};\n", text)
    body = re.sub(r"^export ", "", body, flags=re.M)
    if re.search(r"^(import|export)\b|</script", body, re.M):
        raise ValueError(f'{name}: write import {{ … }} from "./file.js" and export before the declaration')
    return f"const {_variable(name)} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();"


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"

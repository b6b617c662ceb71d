"""The page's ES modules joined to one script.

Browsers refuse to import modules over ``file://``, module addresses made of data: or blob: cannot import each other by
relative names, and from a server thirty small files take thirty requests before the first point is drawn. So each
module becomes a function that returns its exports, in the order of their imports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.M)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.M)


def one_script(modules: Mapping[str, str], start: str = "main.js") -> str:
    """All modules that ``start`` needs in one script, each after those it imports."""
    made: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import each other: {' → '.join((*importers, name))}")
        if name in made:
            return
        text = modules[name]
        for match in _IMPORT.finditer(text):
            add(match[2], (*importers, name))
        made[name] = _as_function(name, text)

    add(start, ())
    return "\n".join(made.values())


def _as_function(name: str, text: str) -> str:
    exported = _EXPORT.findall(text)
    body = _IMPORT.sub(lambda match: f"const {{{match[1]}}} = {_variable(match[2])};\n", text)
    body = re.sub(r"^export ", "", body, flags=re.M)
    if re.search(r"^(import|export)\b|</script", body, re.M):
        raise ValueError(f'{name}: write import {{ … }} from "./file.js" and export before the declaration')
    return f"const {_variable(name)} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();"


def _variable(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"

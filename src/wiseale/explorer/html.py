"""Write the explorer as one self-contained HTML file that works from ``file://`` without any request.

Browsers refuse to import modules over ``file://``, and module addresses made of data: or blob: cannot import each other
by relative names. So each ES module becomes a function that returns its exports, in the order of their imports, in one
inline script; the page's Content-Security-Policy allows this script by its hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.errors import ConfigError
from wiseale.explorer.assets import Asset, load_assets
from wiseale.explorer.manifest import contour_lines, geometry, manifest
from wiseale.explorer.observation import Observation
from wiseale.explorer.session import Session, ShownRun
from wiseale.explorer.stored_decoder import PageDecoder, stored_decoder
from wiseale.explorer.weights import MAX_MULTIPLY_ADDS, NoDescriptionError, describe, multiply_adds
from wiseale.platform.atomic_files import write_text

MOST_ROWS = 10_000
"""Rows in a file, unless the user asks for more."""

_THUMBNAIL_BYTES = 1_000_000  # before compression
_CONTOUR_UNITS = 4  # contours are stored for every pair of the units whose codes vary most

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.M)
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.M)


def write_page(session: Session, path: Path) -> int:
    """Write the file; its size in bytes."""
    text = page(session)
    try:
        write_text(path, text)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    return len(text.encode())


def page(session: Session) -> str:
    """The page with its style, script and data inside."""
    assets = load_assets()
    script, style = one_script(assets), assets["style.css"].text
    data = json.dumps(_data(session), allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_sha256(script)}'; style-src 'sha256-{_sha256(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    html = assets["index.html"].text
    html = re.sub(r'<link rel="modulepreload"[^>]*>\n', "", html)
    html = html.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
    )
    html = html.replace('<link rel="stylesheet" href="style.css">', f"<style>{style}</style>")
    html = html.replace('<script type="module" src="main.js"></script>\n', "")
    embedded = f'<script type="application/json" id="embedded">{data}</script>\n<script type="module">{script}</script>'
    return html.replace("</body>", f"{embedded}\n</body>")


def one_script(assets: Mapping[str, Asset], start: str = "main.js") -> str:
    """All modules that ``start`` needs in one script, each after those it imports."""
    made: dict[str, str] = {}

    def add(name: str, importers: tuple[str, ...]) -> None:
        if name in importers:
            raise ValueError(f"modules import each other: {' → '.join((*importers, name))}")
        if name in made:
            return
        text = assets[name].text
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


def _data(session: Session) -> dict[str, Any]:
    described, observation = manifest(session), session.observation
    decoders = [page_decoder(run, observation) for run in session.runs]
    rows, thumbnails = _thumbnails(session)
    described["thumbnails"]["rows"] = rows
    is_table = observation.kind == "table"
    return {
        "manifest": described,
        "geometry": [_packed(geometry(run)) for run in session.runs],
        "colourings": [_packed(one.values.astype("<f4").tobytes()) for one in session.colourings],
        "contours": [{axes: contour_lines(run.contours(axes)) for axes in _stored_axes(run)} for run in session.runs],
        "thumbnails": thumbnails,
        "originals": _packed(session.x(np.arange(len(session.shown.rows))).astype("<f4").tobytes()) if is_table else "",
        "decoders": [{"description": one.description, "values": _packed(one.content)} for one in decoders],
        "decode_note": next((one.note for one in decoders if one.note), ""),
    }


def page_decoder(run: ShownRun, observation: Observation) -> PageDecoder:
    """The network itself where a page can run it fast enough, else stored decodes."""
    try:
        description, weights = describe(run.codec)
    except NoDescriptionError:
        return stored_decoder(run, observation)
    if multiply_adds(description) > MAX_MULTIPLY_ADDS:
        return stored_decoder(run, observation)
    return PageDecoder({"kind": "network", **description}, weights, "")


def _thumbnails(session: Session) -> tuple[list[int], str]:
    """Every k-th of the session's small pictures, within the budget."""
    if not len(session.thumbnail_rows):
        return [], _packed(b"")
    pictures = session.thumbnails()
    step = -(-pictures.nbytes // _THUMBNAIL_BYTES)
    return session.thumbnail_rows[::step].tolist(), _packed(np.ascontiguousarray(pictures[::step]).tobytes())


def _stored_axes(run: ShownRun) -> list[str]:
    if run.latent_dim == 1:
        return []
    units = np.sort(np.argsort(-run.codes.mu.std(axis=0))[:_CONTOUR_UNITS])
    pairs = [f"{i},{j}" for i, j in itertools.combinations(units.tolist(), 2)]
    return pairs if run.latent_dim == 2 else ["pca", *pairs]


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 9)).decode()


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

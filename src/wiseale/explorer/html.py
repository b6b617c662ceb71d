"""Write the explorer as one self-contained HTML file that works from ``file://`` without any request.

Its script is inline; the page's Content-Security-Policy allows this script by its hash and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import zlib
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.errors import ConfigError
from wiseale.explorer.assets import SCRIPT, load_assets
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
    script, style = assets[SCRIPT].text, assets["style.css"].text
    data = json.dumps(_data(session), allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_sha256(script)}'; style-src 'sha256-{_sha256(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    html = assets["index.html"].text
    html = re.sub(r'<link rel="preload"[^>]*>\n', "", html)
    html = html.replace(
        '<meta charset="utf-8">',
        f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
    )
    html = html.replace('<link rel="stylesheet" href="style.css">', f"<style>{style}</style>")
    html = html.replace(f'<script type="module" src="{SCRIPT}"></script>\n', "")
    embedded = f'<script type="application/json" id="embedded">{data}</script>\n<script type="module">{script}</script>'
    return html.replace("</body>", f"{embedded}\n</body>")


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

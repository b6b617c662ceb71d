"""Write the explorer as one self-contained HTML file that works from ``file://`` without any request.

Its script is inline; the page's Content-Security-Policy allows this script by its hash and nothing else. Where a page
cannot run the network, decoded codes are stored in it: on a grid for d_z ≤ 2, else those of some rows.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import zlib
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from wiseale.errors import ConfigError
from wiseale.explorer.assets import SCRIPT, load_assets
from wiseale.explorer.manifest import contour_lines, geometry, manifest
from wiseale.explorer.observation import Observation, to_bytes
from wiseale.explorer.session import MOST_CODES, Session, ShownRun
from wiseale.explorer.weights import MAX_MULTIPLY_ADDS, NoDescriptionError, describe, multiply_adds
from wiseale.platform.atomic_files import write_text

MOST_ROWS = 10_000
"""Rows in a file, unless the user asks for more."""

_THUMBNAIL_BYTES = 1_000_000  # before compression
_CONTOUR_UNITS = 4  # contours are stored for every pair of the units whose codes vary most
_DECODER_BYTES = 3_000_000  # before compression
_FINEST_GRID = 32
_DECODED_ROWS = 600


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
    script, style, html = assets[SCRIPT], assets["style.css"], assets["index.html"]
    data = json.dumps(_data(session), allow_nan=False, separators=(",", ":")).replace("</", "<\\/")
    policy = (
        f"default-src 'none'; script-src 'sha256-{_sha256(script)}'; style-src 'sha256-{_sha256(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
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


@dataclass(frozen=True)
class PageDecoder:
    """What a page needs to decode codes of one run: a description as JSON, numbers in bulk, and a note for readers."""

    description: dict[str, Any]
    content: bytes
    note: str


def page_decoder(run: ShownRun, observation: Observation) -> PageDecoder:
    """The network itself where a page can run it fast enough, else stored decodes."""
    try:
        description, weights = describe(run.codec)
    except NoDescriptionError:
        return stored_decoder(run, observation)
    if multiply_adds(description) > MAX_MULTIPLY_ADDS:
        return stored_decoder(run, observation)
    return PageDecoder({"kind": "network", **description}, weights, "")


def stored_decoder(run: ShownRun, observation: Observation) -> PageDecoder:
    """Decode as many codes as fit the budget; images and signals are stored in 8 bits a value."""
    mu, dims, is_table = run.codes.mu, run.latent_dim, observation.kind == "table"
    most = _DECODER_BYTES // ((4 if is_table else 1) * observation.size)
    description: dict[str, Any]
    if dims <= 2:
        points = max(4, min(_FINEST_GRID, int(most ** (1 / dims))))
        low = np.minimum(np.quantile(mu, 0.002, axis=0), -3.2)
        high = np.maximum(np.quantile(mu, 0.998, axis=0), 3.2)
        mesh = np.meshgrid(*np.linspace(low, high, points).T)  # the first unit runs fastest
        codes = np.stack([part.ravel() for part in mesh], axis=1).astype(np.float32)
        description = {"kind": "grid", "from": low.tolist(), "to": high.tolist(), "points": points, "codes": 0}
        source, content = f"Interpolated between {' × '.join([str(points)] * dims)}", b""
    else:
        rows = np.linspace(0, len(mu) - 1, max(16, min(_DECODED_ROWS, most, len(mu)))).astype(int)
        codes = np.ascontiguousarray(mu[rows], np.float32)
        description = {"kind": "nearest", "codes": codes.size}
        source, content = f"The nearest of {len(rows):,}", codes.astype("<f4").tobytes()
    blocks = range(0, len(codes), MOST_CODES)
    x = np.concatenate([run.decode(codes[start : start + MOST_CODES]) for start in blocks])
    lowest, highest = (0.0, 1.0) if is_table else (float(x.min()), float(x.max()))
    content += x.astype("<f4").tobytes() if is_table else to_bytes(x, lowest, highest).tobytes()
    description |= {"dims": dims, "size": observation.size, "low": lowest, "high": highest, "float": is_table}
    return PageDecoder(description, content, f"{source} stored decodes: this file does not hold the network.")


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

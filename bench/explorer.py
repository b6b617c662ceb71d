"""The explorer's page in headless Chromium, drawn in software: first map, decoding, panning, size of the file.

``python -m bench explorer``: a briefly trained model of the paper's MNIST network and 10,000 test digits; for panning,
their codes six times over, a little apart. Server, page and rendering share the machine's cores.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tests.explorer.browser import chromium, opened
from tests.explorer.local_server import local_server

from bench.table import Table
from wiseale.cli import main
from wiseale.data.dataset import Rows
from wiseale.explorer.html import page
from wiseale.explorer.opening import choose_rows, open_models
from wiseale.explorer.session import Session, ShownRun, make_session
from wiseale.models.inference import Codes

FIRST_MAP = """() => {
    const mark = performance.getEntriesByName('first-map')[0].startTime;
    return mark - performance.getEntriesByType('navigation')[0].requestStart;
}"""

DECODE = """async (times) => {
    const found = [];
    for (let k = 0; k < times; k++) {
        const start = performance.now();
        const answer = await fetch('decode/0', { method: 'POST', body: Float32Array.of(Math.sin(k), Math.cos(k)) });
        await answer.arrayBuffer();
        found.push(performance.now() - start);
    }
    return found;
}"""

# A drag along a circle, one step in each frame; which frames came after how long, and how often rows were left out.
PAN = """async (seconds) => {
    const stage = document.querySelector('.stage');
    const box = stage.getBoundingClientRect();
    const at = (type, x, y) => stage.dispatchEvent(new PointerEvent(type, {
        pointerId: 1, bubbles: true, button: 0, buttons: 1, clientX: box.left + x, clientY: box.top + y }));
    stage.setPointerCapture = () => {};
    const frame = () => new Promise(requestAnimationFrame);
    const times = [];
    let thinned = 0;
    at('pointerdown', 300, 250);
    const start = performance.now();
    for (let k = 0; performance.now() - start < 1000 * seconds; k++) {
        at('pointermove', 300 + 90 * Math.cos(k / 8), 250 + 90 * Math.sin(k / 8));
        times.push(await frame());
        if (document.querySelector('.thinned').textContent.includes('while moving')) thinned++;
    }
    at('pointerup', 300, 250);
    const gaps = times.slice(1).map((time, k) => time - times[k]);
    return { gaps, thinned: thinned / times.length };
}"""


def measure(quick: bool) -> Iterator[Table]:
    loads, decodes, seconds = (3, 40, 2) if quick else (11, 400, 5)
    rows: list[tuple[str | float, ...]] = []
    with session_of_digits() as session, chromium() as browser:
        with local_server(session) as server:
            times, spent = zip(*(_first_map(browser, server.url) for _ in range(loads)), strict=True)
            rows.append(("first map, 10,000 codes (ms)", median(times), max(times), median(spent), "below 500"))
            with opened(browser, server.url) as shown:
                shown.evaluate(DECODE, decodes // 10)
                before = processor_ms()
                times = shown.evaluate(DECODE, decodes)
            each = (processor_ms() - before) / decodes
            rows.append(("decode round trip (ms)", median(times), _percentile(times, 95), each, "below 30"))
        with local_server(many_points(session)) as server:
            rows += [_panning(browser, server.url, renderer, seconds) for renderer in ("webgl", "canvas")]
        size = len(page(session).encode()) / 1e6
        rows.append(("one file for MNIST (MB)", size, size, "", "below 3"))
    yield Table(
        "explorer",
        f"The explorer's page in headless Chromium with software rendering. Median and worst of {loads} loads from "
        f"the request to the drawn map; median and 95th percentile of {decodes} decodes one after another; frames a "
        f"second while 60,000 points are panned for {seconds} s, median and slowest twentieth, and the share of frames "
        "in which the page leaves out rows and says so. Processor time is that of server, page and rendering together, "
        "per load, decode or frame; other programs on the machine change it little.",
        ("measured", "median", "worst", "processor time (ms)", "asked"),
        tuple(rows),
    )


def _first_map(browser: Any, url: str) -> tuple[float, float]:
    before = processor_ms()
    with opened(browser, url) as shown:
        return float(shown.evaluate(FIRST_MAP)), processor_ms() - before


def _panning(browser: Any, url: str, renderer: str, seconds: float) -> tuple[str | float, ...]:
    with opened(browser, f"{url}?renderer={renderer}") as shown:
        before = processor_ms()
        found = shown.evaluate(PAN, seconds)
        spent = (processor_ms() - before) / max(1, len(found["gaps"]))
    rate, worst = 1000 / median(found["gaps"]), 1000 / _percentile(found["gaps"], 95)
    asked = f"30, or thinned: rows left out in {found['thinned']:.0%} of frames"
    return (f"panning 60,000 points, {renderer} (frames/s)", rate, worst, spent, asked)


def processor_ms() -> float:
    """Milliseconds of processor time that this process and its living descendants, Chromium's among them, have used."""
    parents, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            fields = entry.read_text().rpartition(")")[2].split()
            parents[int(entry.parent.name)] = int(fields[1])
            used[int(entry.parent.name)] = int(fields[11]) + int(fields[12])
    ours = {os.getpid()}
    for _ in range(6):  # Chromium's processes stand a few generations below
        ours |= {process for process, parent in parents.items() if parent in ours}
    return sum(used[process] for process in ours) * 1000 / os.sysconf("SC_CLK_TCK")


def _percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share))


@contextmanager
def session_of_digits() -> Iterator[Session]:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        train = ["train", "mnist:n=6400", "--latent-dim", "2", "--max-epochs", "1", "--no-figures", "--out", str(run)]
        try:
            main(train)
        except SystemExit as ended:
            if ended.code:
                raise
        models = open_models([run])
        yield make_session(models, choose_rows(models, None))


def many_points(session: Session, times: int = 6) -> Session:
    """The session's rows several times over, the codes of each copy a little apart."""
    shown, run = session.shown, session.runs[0]
    draws = np.random.default_rng(0)

    def tiled(values: Any, spread: float = 0.0) -> Any:
        copies = np.tile(values, (times, *[1] * (values.ndim - 1)))
        return copies + spread * draws.normal(size=copies.shape).astype(copies.dtype) if spread else copies

    factors = {name: tiled(np.asarray(values)) for name, values in shown.rows.factors.items()}
    rows = Rows(tiled(np.asarray(shown.rows.x)), shown.rows.reading, factors)
    codes = run.codes
    assert codes.sigma is not None
    assert codes.error is not None
    many = Codes(tiled(codes.mu, 0.05), tiled(codes.sigma), tiled(codes.error))
    more = dataclasses.replace(shown, rows=rows, numbers=np.arange(len(rows)), available=len(rows))
    return Session(more, (ShownRun(run.opened, many, run.principal),))

"""Everything about data: loading, packing, rendering."""

from __future__ import annotations

from bench import loading, packing, teapot
from bench.table import Table


def measure(quick: bool) -> list[Table]:
    packed = Table(
        "packing",
        "Portraits packed beside a bare Pillow loop in as many processes (seconds), and memory (bytes).",
        ("what", "images", "wiseale", "bare", "ratio", "unit"),
        tuple(
            (row.what, row.images, row.ours, "-" if row.bare is None else row.bare, _ratio(row), row.unit)
            for row in packing.run(quick)
        ),
    )
    rendered = teapot.measure(quick)
    pots = Table(
        "teapot",
        "Teapots rendered, coloured and stored as uint8; cores used tells what the machine had to give.",
        tuple(rendered[0]),
        tuple(tuple(row.values()) for row in rendered),
    )
    return [*loading.measure(quick), packed, pots]


def _ratio(row: packing.Row) -> str | float:
    return "-" if row.bare is None else row.ratio

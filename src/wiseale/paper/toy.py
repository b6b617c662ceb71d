"""The bound analysis: the paper's Figure 4, the optima of the bound and of the objective, and claims C4 and C8."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from matplotlib.figure import Figure

from wiseale.errors import RunError
from wiseale.figures.style import save_figure
from wiseale.paper import Scale
from wiseale.paper.toy_figures import figure4, optimum_figure
from wiseale.paper.toy_values import (
    TOLERANCE,
    MinimumRow,
    ObjectiveOptimumRow,
    OptimumRow,
    TwoGaussiansRow,
    minima,
    objective_optimum,
    optimum,
    two_gaussians_curve,
)
from wiseale.platform.atomic_files import write_text
from wiseale.platform.json_files import parse_json, read_text, record, to_json
from wiseale.report.document import csv_text

WIDE = 2.0  # a range of sigma is wide if largest / smallest exceeds this
CLOSE = 0.01  # the bound has approached the exact value if it is within this many nats per dimension


@dataclass(frozen=True)
class Judgement:
    """A claim that is decided by computation alone, whether it held, and the numbers that decide it."""

    claim: str
    verdict: Literal["held", "not held"]
    numbers: str


@dataclass(frozen=True)
class ToyTables:
    """All results of the analysis; each field is a table, stored under its name in ``tables``."""

    two_gaussians: tuple[TwoGaussiansRow, ...]
    minima: tuple[MinimumRow, ...]
    optimum: tuple[OptimumRow, ...]
    objective_optimum: tuple[ObjectiveOptimumRow, ...]
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True)
class ToyResult:
    """The tables of the analysis, and its figures (PNG, each with an SVG beside it)."""

    tables: ToyTables
    figures: tuple[Path, ...]


@dataclass(frozen=True)
class Effort:
    """How much is computed at one scale: numbers of posteriors, starts and iterations, and noises of the decoder."""

    optimum_sizes: tuple[int, ...]
    starts: int
    iterations: int
    objective_sizes: tuple[int, ...]
    x_sigmas: tuple[float, ...]


_X_SIGMAS = (3.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01)
EFFORTS: dict[Scale, Effort] = {
    "smoke": Effort((2, 4, 16), 1, 100, (16,), (1.0, 0.1, 0.01)),
    "small": Effort((2, 4, 16, 64), 3, 500, (16, 64), _X_SIGMAS),
    "paper": Effort((2, 4, 16, 64, 256), 4, 800, (16, 64), _X_SIGMAS),
}


def run_toy(out: Path, scale: Scale, report: Callable[[str], None]) -> ToyResult:
    """Run the analysis and write tables (CSV, JSON) and figures (PNG, SVG) under ``out``; ``report`` gets progress."""
    tables = compute(EFFORTS[scale], report)
    for field in dataclasses.fields(tables):
        write_table(getattr(tables, field.name), out / "tables" / field.name)
    report("drawing")
    return ToyResult(tables, _draw_all(tables, out))


def has_all_tables(out: Path) -> bool:
    """Whether a directory has a complete analysis: its tables are written one by one, the judgements last."""
    return (out / "tables" / "judgements.json").exists()


def read_toy(out: Path) -> ToyResult:
    """Read the analysis in a directory and draw its figures again from its tables."""
    tables = ToyTables(**{field.name: read_table(out, field.name) for field in dataclasses.fields(ToyTables)})
    return ToyResult(tables, _draw_all(tables, out))


def read_table(out: Path, name: str) -> tuple[Any, ...]:
    """One table of the analysis in a directory; ``name`` is a field of :class:`ToyTables`."""
    kind = get_args(get_type_hints(ToyTables)[name])[0]
    path = out / "tables" / f"{name}.json"
    try:
        return tuple(record(kind, values) for values in parse_json(read_text(path)))
    except (OSError, ValueError, TypeError):
        raise RunError(f"cannot read {path}: make it again with `wiseale reproduce toy`") from None


def write_table(rows: Sequence[Any], stem: Path) -> None:
    """Write ``stem.csv`` and ``stem.json``, one record per row."""
    records = [dataclasses.asdict(row) for row in rows]
    stem.parent.mkdir(parents=True, exist_ok=True)
    write_text(stem.with_suffix(".csv"), csv_text([records[0], *(one.values() for one in records)]))
    write_text(stem.with_suffix(".json"), to_json(records))


def compute(effort: Effort, report: Callable[[str], None]) -> ToyTables:
    """All tables."""
    report("two Gaussians: the paper's Figure 4")
    curve, lowest = two_gaussians_curve(151), minima()
    report("optima of the bound, and of the whole objective")
    optima = [optimum(d, m, effort.starts, effort.iterations, seed=0) for d in (1, 2) for m in effort.optimum_sizes]
    whole = [objective_optimum(m, s, effort.iterations) for m in effort.objective_sizes for s in effort.x_sigmas]
    judgements = (judge_c4(lowest), judge_c8(optima, whole))
    return ToyTables(tuple(curve), tuple(lowest), tuple(optima), tuple(whole), judgements)


def draw(tables: ToyTables) -> Iterator[tuple[str, Figure]]:
    """Draw the figures one by one; yields name and figure."""
    yield "figure4", figure4(tables.two_gaussians, tables.minima)
    yield "bound_error_optimum", optimum_figure(tables.optimum, tables.objective_optimum)


def _draw_all(tables: ToyTables, out: Path) -> tuple[Path, ...]:
    return tuple(save_figure(figure, out / "figures" / name) for name, figure in draw(tables))


def judge_c4(minima: Sequence[MinimumRow]) -> Judgement:
    """AEVB's KL is smallest for wide, merged posteriors, WiSE-ALE's bound for narrower ones over a wide range."""
    rows = {row.quantity: row for row in minima}
    aevb, jensen, exact = rows["aevb"], rows["jensen"], rows["exact"]
    held = (
        abs(aevb.sigma - 1) < 1e-3
        and jensen.sigma < aevb.sigma
        and jensen.minimum < aevb.minimum
        and jensen.under_aevb_to / jensen.under_aevb_from > WIDE
    )
    numbers = (
        f"AEVB smallest at σ = {aevb.sigma:.3f} ({aevb.minimum:.3f} nats); the paper's bound at σ = {jensen.sigma:.3f} "
        f"({jensen.minimum:.3f}), the exact aggregate KL at σ = {exact.sigma:.3f} ({exact.minimum:.3f}); the bound is "
        f"under AEVB's minimum for σ from {jensen.under_aevb_from:.2f} to {jensen.under_aevb_to:.2f}. Within "
        f"{TOLERANCE:g} nats of its own minimum lie σ from {_range(jensen)} for the bound and from {_range(aevb)} for "
        "AEVB"
    )
    return Judgement("C4", "held" if held else "not held", numbers)


def _range(row: MinimumRow) -> str:
    return f"{row.low_from:.2f} to {row.low_to:.2f} (a factor of {row.low_to / row.low_from:.1f})"


def judge_c8(optima: Sequence[OptimumRow], objective: Sequence[ObjectiveOptimumRow]) -> Judgement:
    """At the optimum the bound approaches the true KL: within ``CLOSE`` at every optimum of the whole objective."""
    held = all(row.gap <= CLOSE for row in objective)
    largest = max(objective, key=lambda row: row.gap)
    smallest = min(objective, key=lambda row: row.gap)
    alone = "; ".join(
        f"d = {row.latent_dim}, M = {row.batch_size}: {row.bound:.4f} against {row.exact:.4f}" for row in optima
    )
    numbers = (
        f"bound − exact at the optimum of reconstruction + bound (d = 1) is {smallest.gap:.3f} nats at x_sigma = "
        f"{smallest.x_sigma:g}, M = {smallest.batch_size}, and {largest.gap:.3f} at x_sigma = {largest.x_sigma:g}, M = "
        f"{largest.batch_size}, where the posteriors are apart. At the minimum of the bound alone, bound against "
        f"exact: {alone}"
    )
    return Judgement("C8", "held" if held else "not held", numbers)

"""Write the tables (CSV, JSON) and figures (PNG, SVG) of docs/bounds.md that `wiseale reproduce toy` does not write.

python -m docs.pages.bounds OUT [--scale smoke|small|paper]
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docs.pages.bounds.error import Effort, error_rows, powers_of_two
from docs.pages.bounds.figures import bias_figure, error_figures, saturation_figure
from docs.pages.bounds.limits import bias_rows, collapse_rows, saturation_rows
from matplotlib.figure import Figure

from wiseale.figures.style import save_figure
from wiseale.paper.toy import write_table


@dataclass(frozen=True)
class Plan:
    """The sizes computed at one scale; ``per_axis``: posteriors along each axis of the dataset, by dimension."""

    effort: Effort
    per_axis: dict[int, int]
    batches: int


PLANS = {
    "smoke": Plan(Effort(7, 1, 8, 32, (1, 2, 8, 64)), {1: 256, 2: 24}, 6),
    "small": Plan(Effort(13, 4, 24, 128), {1: 1024, 2: 40}, 32),
    "paper": Plan(Effort(25, 8, 24, 256), {1: 1024, 2: 40}, 64),
}
BIAS_SIGMAS = {1: (0.02, 0.1, 0.3), 2: (0.1, 0.2, 0.5)}
SATURATION_DIMENSIONS = (1, 4, 16, 64)


def compute(plan: Plan, seed: int) -> dict[str, Sequence[Any]]:
    """Every table by name; the same seed gives the same numbers."""
    sizes = powers_of_two(2, plan.effort.max_batch_size)
    bias = [
        row
        for d, per_axis in plan.per_axis.items()
        for sigma in BIAS_SIGMAS[d]
        for row in bias_rows(per_axis, d, sigma, (1, *sizes), plan.batches, seed)
    ]
    return {
        "collapse": collapse_rows(plan.effort.dimensions),
        "saturation": saturation_rows(SATURATION_DIMENSIONS, powers_of_two(2, min(256, sizes[-1])), seed),
        "batch_bias": bias,
        "bound_error": list(error_rows(plan.effort, seed)),
    }


def draw(tables: dict[str, Sequence[Any]]) -> Iterator[tuple[str, Figure]]:
    """Every figure, with its name."""
    yield from error_figures(tables["bound_error"])
    yield "bound_error_saturation", saturation_figure(tables["saturation"])
    yield "bound_error_batch_bias", bias_figure(tables["batch_bias"])


def write(out: Path, plan: Plan) -> None:
    """Compute the tables, write them to ``out/tables`` and draw the figures into ``out/figures``."""
    tables = compute(plan, 0)
    for name, rows in tables.items():
        write_table(rows, out / "tables" / name)
    for name, figure in draw(tables):
        print(save_figure(figure, out / "figures" / name))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m docs.pages.bounds", description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--scale", choices=PLANS, default="paper")
    arguments = parser.parse_args()
    write(arguments.out, PLANS[arguments.scale])


if __name__ == "__main__":
    main()

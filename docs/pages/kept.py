"""The folder that keeps results of reproductions.

runs.csv                      one row per run, of all reproductions added so far
curves.csv                    training curves of the runs that Figure 6 shows
arrays/EXPERIMENT-SCALE.npz   reconstructions and posteriors that Figures 1 and 5 show
toy/SCALE/tables/*.json       the tables behind Figure 4, C4 and C8
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from docs.pages.curves import Curve, curve_of, merge_curves, read_curves, write_curves
from docs.pages.figure_arrays import FigureArrays, collect_arrays

from wiseale.errors import RunError
from wiseale.experiments import systems as s
from wiseale.paper.reproduction import Reproduction, read_reproduction
from wiseale.paper.rows import RUNS, Condition, RunRow, conditions_of, merge, read_rows, row_of, write_rows

CURVES = "curves.csv"
TOY_TABLES = ("two_gaussians", "minima", "judgements")
IN_FIGURE_6 = (s.WISE_ALE, s.WISE_ALE_AS_WRITTEN, s.AEVB, s.AEVB_WARM_UP, s.BETA_VAE)


@dataclass(frozen=True)
class Results:
    """The folder and what it holds."""

    folder: Path

    def rows(self) -> list[RunRow]:
        """Every run's row; none where nothing has been added."""
        return read_rows(self.folder / RUNS) if (self.folder / RUNS).exists() else []

    def curves(self, condition: Condition) -> list[Curve]:
        """The training curves under one condition."""
        return [curve for curve in read_curves(self.folder / CURVES) if curve.condition == condition.key]

    def arrays(self, condition: Condition) -> FigureArrays | None:
        """The arrays of an experiment's figures; None where they are of another condition, or there are none."""
        path = self._arrays(condition)
        arrays = FigureArrays.load(path) if path.exists() else None
        return arrays if arrays is not None and arrays.condition == condition.key else None

    def toy(self, scale: str) -> Path | None:
        """The bound analysis at a scale, as ``read_table`` takes it; None where it has not been added."""
        folder = self._toy(scale)
        return folder if all((folder / "tables" / f"{name}.json").exists() for name in TOY_TABLES) else None

    def add(self, directory: Path) -> None:
        """Take over what `wiseale reproduce` has finished in a directory; the same run taken again replaces itself."""
        reproduction = read_reproduction(directory)
        if reproduction.scale == "smoke":
            raise RunError(f"{directory} is a rehearsal (scale smoke): its numbers are not kept")
        rows = merge(self.rows(), reproduction.rows())
        write_rows(self.folder / RUNS, rows)
        self._add_curves_and_arrays(reproduction, rows)
        tables = [directory / "toy" / "tables" / f"{name}.json" for name in TOY_TABLES]
        if all(table.exists() for table in tables):
            kept = self._toy(reproduction.scale) / "tables"
            kept.mkdir(parents=True, exist_ok=True)
            for table in tables:
                shutil.copyfile(table, kept / table.name)

    def _add_curves_and_arrays(self, reproduction: Reproduction, rows: list[RunRow]) -> None:
        """Of the scale's condition with the most runs: arrays of another one would never be drawn."""
        scale = reproduction.scale
        usual = {name: conditions[0] for name, conditions in conditions_of(rows, scale).items()}
        curves: list[Curve] = []
        for name, outcome in reproduction.outcomes.items():
            condition = usual.get(name)
            results = [one for one in outcome.results if row_of(one, name, scale).condition == condition]
            if condition is None or not results:
                continue
            if name == "sine":
                names = [system.name for system in IN_FIGURE_6]
                curves += [curve_of(result, condition) for result in results if result.system.name in names]
            figures = outcome.experiment.figures
            if not {"reconstructions", "posteriors"} & figures.keys():
                continue
            arrays = collect_arrays(
                results,
                condition.key,
                reconstructions="reconstructions" in figures,
                inputs=not outcome.experiment.photographs,
                before=self.arrays(condition),
            )
            if arrays is not None:
                arrays.save(self._arrays(condition))
        if curves:
            write_curves(self.folder / CURVES, merge_curves(read_curves(self.folder / CURVES), curves))

    def _arrays(self, condition: Condition) -> Path:
        return self.folder / "arrays" / f"{condition.experiment}-{condition.scale}.npz"

    def _toy(self, scale: str) -> Path:
        return self.folder / "toy" / scale

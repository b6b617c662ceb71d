"""Which runs of a reproduction are made: some of them by name, more seeds, not those whose rows are known already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wiseale.config import TrainConfig, parse_spec
from wiseale.experiments.job import Job
from wiseale.experiments.paper.run_rows import NOT_KEPT, RunRow, without_folders

_NOT_COMPARED = NOT_KEPT | {"objective", "prior_warmup", "seed"}


@dataclass(frozen=True)
class Choice:
    """A choice of runs.

    Attributes:
        only: parts of names; a run is made if its name contains one of them. Empty: every run.
        seeds: seeds of each system; None: as many as the scale has.
        known: rows of runs made elsewhere, which are not made again.
    """

    only: tuple[str, ...] = ()
    seeds: int | None = None
    known: tuple[RunRow, ...] = ()

    def includes(self, job: Job, place: tuple[str, str, str]) -> bool:
        """Whether to make a run, given its place: experiment, scale and control."""
        if self.only and not any(part.casefold() in job.name.casefold() for part in self.only):
            return False
        known = [row for row in self.known if _place(row) == place and _is_of_system(job, row)]
        return not any(is_row_of(job.config, row) for row in known)


ALL_RUNS = Choice()


def _place(row: RunRow) -> tuple[str, str, str]:
    return row.condition.experiment, row.condition.scale, row.condition.control


def _is_of_system(job: Job, row: RunRow) -> bool:
    """A job's name ends with its system's, followed by the seed where there are several."""
    return f" {job.name}".endswith((f" {row.system}", f" {row.system}, seed {row.seed}"))


def is_row_of(config: TrainConfig, row: RunRow) -> bool:
    """Whether the row is of a run with these settings: every setting that is given has the row's value.

    A setting left at its default has the data's own value, in the run and in the row. Settings of the machine do not
    count.
    """
    if (config.objective, config.seed) != (row.objective, row.seed):
        return False
    if config.prior_warmup not in (None, row.prior_warmup):
        return False
    kept: Mapping[str, Any] = json.loads(row.config)
    given = {item.name: getattr(config, item.name) for item in fields(config) if item.name not in _NOT_COMPARED}
    defaults = {item.name: item.default for item in fields(config)}
    return all(_agrees(name, value, kept.get(name)) for name, value in given.items() if value != defaults[name])


def _agrees(name: str, given: Any, kept: Any) -> bool:
    if name in ("data", "init_from"):
        return bool(without_folders(given) == kept)
    if name in ("network", "likelihood") and isinstance(kept, str):  # the row also has the settings left at defaults
        (asked, settings), (known, known_settings) = parse_spec(given), parse_spec(kept)
        return asked == known and settings.items() <= known_settings.items()
    return bool(given == kept)

"""The systems, settings and machine behind a report, and the commands that repeat the runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from wiseale.config import SCIENCE
from wiseale.experiments.comparison import Comparison, Result
from wiseale.report.document import Block, Commands, Paragraph, Table
from wiseale.training.settings import RunSettings

_COMMON = tuple(  # the objective and the seed stand beside each system and run
    item.name for item in fields(RunSettings) if item.name in SCIENCE and item.name not in ("objective", "seed")
)
_FACTS = ("n_train", "n_held_out", "steps_per_epoch", "x_shape", "standardized")


def run_blocks(comparison: Comparison, results: Sequence[Result], name: str = "") -> tuple[Block, ...]:
    """The systems, their common settings, the commands that repeat the runs, and the machine."""
    if not results:
        return (Paragraph("No run has finished."),)
    seed = results[0].seed
    lines = tuple(
        f"wiseale train --config {one.path.relative_to(comparison.out)}/config.json --out again/{one.system.folder}"
        for one in results
        if one.seed == seed and one.path.is_relative_to(comparison.out)
    )
    environment = asdict(results[0].directory.read_environment())
    return (
        systems_table(results, f"{name}systems"),
        settings_table(results, f"{name}settings"),
        Paragraph(
            f"From {comparison.out.name}/, these commands make the runs of seed {seed} again, bit for bit on the same "
            "machine and versions; other seeds with --seed."
        ),
        Commands(lines),
        Table(f"{name}environment", ("what", "value"), _pairs(environment), "Machine and versions."),
    )


def systems_table(results: Sequence[Result], name: str) -> Table:
    """Each system with all its settings and the effective weight of its prior."""
    first = {result.system.name: result for result in reversed(results)}
    shared, rows = _shared_settings(results), []
    for result in sorted(first.values(), key=results.index):
        record = result.directory.read_record()
        values = record.settings.to_values()
        own = {key: values[key] for key in _COMMON if key not in shared}
        own |= result.system.settings
        weight, parameters = f"{record.facts.prior_weight:.4g}", f"{record.facts.parameters:,}"
        listed = ", ".join(f"{key} {value}" for key, value in own.items()) or "-"
        rows.append((result.system.name, values["objective"], listed, weight, parameters))
    columns = ("system", "objective with all its settings", "settings of its own", "effective weight", "parameters")
    return Table(name, columns, tuple(rows), "What was compared. The prior's effective weight is per observation.")


def settings_table(results: Sequence[Result], name: str) -> Table:
    """The settings that all runs share."""
    record = results[0].directory.read_record()
    facts = {key: getattr(record.facts, key) for key in _FACTS} | {"x_shape": list(record.facts.x_shape)}
    return Table(name, ("setting", "value"), _pairs(_shared_settings(results) | facts), "Settings of all runs.")


def _shared_settings(results: Sequence[Result]) -> dict[str, object]:
    """Those with one value in all runs."""
    every = [result.directory.read_record().settings.to_values() for result in results]
    return {key: every[0][key] for key in _COMMON if all(settings[key] == every[0][key] for settings in every)}


def _pairs(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple((key.replace("_", " "), "-" if value is None else str(value)) for key, value in values.items())

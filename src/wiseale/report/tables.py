"""Tables of reports: results and measures of systems, their settings, and runs that did not finish."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields

from wiseale.config import SCIENCE
from wiseale.experiments.comparison import Result, Summary
from wiseale.experiments.intervals import Estimate
from wiseale.experiments.jobs import Failure
from wiseale.report.document import Table
from wiseale.training.settings import RunSettings

FIT = {
    "mse": "MSE",
    "reconstruction": "reconstruction",
    "kl_posterior_prior": "AEVB KL",
    "kl_aggregate_mc": "aggregate KL",
    "kl_reverse_mc": "reverse KL",
    "elbo": "ELBO",
    "nll_importance_weighted": "NLL",
}
CODES = {
    "mutual_information": "mutual information",
    "active_units": "active units",
    "sigma_geometric_mean": "width",
    "separation": "separation",
}
_MOST_DECIMALS = 6
_COMMON = tuple(  # the objective and the seed stand beside each system and run
    item.name for item in fields(RunSettings) if item.name in SCIENCE and item.name not in ("objective", "seed")
)
_FACTS = ("n_train", "n_held_out", "steps_per_epoch", "x_shape", "standardized")


def estimate_cell(estimate: Estimate | None, seeds: int = 0) -> str:
    """Mean ± half width of the interval, the half width to two digits; "-" for None.

    A half width below 0.00005 of a mean above 0.1 is left out, and noise about 0 is "0". Where only some of the
    system's ``seeds`` have a finite value, the cell says so.

    >>> estimate_cell(Estimate(mean=1.23456, half_width=0.0321, n=3))
    '1.235 ± 0.032'
    >>> estimate_cell(Estimate(mean=4.2e-6, half_width=1.3e-6, n=2), seeds=3)
    '4.2e-06 ± 1.3e-06 (2 of 3 seeds)'
    >>> estimate_cell(Estimate(mean=4.4886386, half_width=2.6e-6, n=3)), estimate_cell(Estimate(2e-7, 2.9e-6, 3))
    ('4.4886', '0')
    """
    if estimate is None:
        return "-"
    some = f" ({estimate.n} of {seeds} seeds)" if estimate.n < seeds else ""
    return _mean_and_half(estimate.mean, estimate.half_width) + some


def _mean_and_half(mean: float, half: float | None) -> str:
    if not half or half < 1e-9 * abs(mean):  # one seed, or the same value for every seed
        return f"{mean:,.0f}" if float(mean).is_integer() else three_digits(mean)
    if half < 5e-5 and abs(mean) > 0.1:
        return f"{mean:.4f}"
    if abs(mean) < half < 1e-4:
        return "0"
    decimals = max(1 - math.floor(math.log10(half)), 0)
    if decimals <= _MOST_DECIMALS:
        return f"{mean:.{decimals}f} ± {half:.{decimals}f}"
    digits = max(0, math.floor(math.log10(abs(mean) or half)) + decimals)
    return f"{mean:.{digits}e} ± {half:.1e}"


def three_digits(value: float) -> str:
    """Three significant digits; digits before the point are never rounded away.

    >>> three_digits(1234.5678), three_digits(12.345678), three_digits(0.0561), three_digits(0.00042)
    ('1235', '12.3', '0.0561', '0.000420')
    >>> three_digits(7.288e-06)
    '7.29e-06'
    """
    if not math.isfinite(value):
        return str(value)
    rounded = f"{value:.2e}"
    exponent = int(rounded.partition("e")[2])
    return rounded if exponent < -4 else f"{value:.{max(0, 2 - exponent)}f}"


def main_table(summary: Summary) -> Table:
    """The measures most people look at first, in one table."""
    return results_table(summary, FIT | CODES, "results")


def results_table(summary: Summary, measures: dict[str, str], name: str, caption: str = "") -> Table:
    """One row per system; measures that no system has are left out."""
    titles = {measure: title for measure, title in measures.items() if any(measure in m for m in summary.values())}
    seeds = _seeds(summary)
    rows = tuple((k, *(estimate_cell(m.get(measure), seeds[k]) for measure in titles)) for k, m in summary.items())
    return Table(name, ("system", *titles.values()), rows, caption)


def _seeds(summary: Summary) -> dict[str, int]:
    """How many runs each system has: every run has some measure."""
    return {system: max((one.n for one in measures.values()), default=0) for system, measures in summary.items()}


def full_table(summary: Summary, stem: str = "") -> Table:
    """Every measure of every system."""
    names = list(dict.fromkeys(name for measures in summary.values() for name in measures))
    seeds = _seeds(summary)
    rows = tuple((name, *(estimate_cell(m.get(name), seeds[k]) for k, m in summary.items())) for name in names)
    caption = (
        "A dash: not defined for that system. The values of each run, with all digits, are in "
        f"tables/{stem}measures_by_run.csv."
    )
    return Table(f"{stem}all_measures", ("measure", *summary), rows, caption)


_MEASURES = {"rmse": ("RMSE", "the column's mean"), "accuracy": ("accuracy", "the most frequent level")}


def column_quality(summary: Summary, name: str = "columns") -> tuple[Table, ...]:
    """One row per column: a measure of every system beside the baseline; nothing where there are no such measures."""
    rows = []
    for measure, (title, baseline) in _MEASURES.items():
        names = dict.fromkeys(key for measures in summary.values() for key in measures if key.startswith(f"{measure}:"))
        for key in names:
            column = key.removeprefix(f"{measure}:")
            systems = [estimate_cell(measures.get(key)) for measures in summary.values()]
            without = next((m[f"{measure}_baseline:{column}"] for m in summary.values() if key in m), None)
            rows.append((column, title, *systems, f"{estimate_cell(without)} ({baseline})"))
    if not rows:
        return ()
    caption = (
        "How well each column is reconstructed from the mean code, on rows the models have not seen: RMSE in the "
        "column's own units (less is better), accuracy of the likeliest level (more is better)."
    )
    return (Table(name, ("column", "measure", *summary, "without a model"), tuple(rows), caption),)


def runs_table(results: Sequence[Result], stem: str = "") -> Table:
    """Every measure of every run, with all digits."""
    rows = tuple(
        (result.system.name, str(result.seed), measure, "" if value is None else repr(value))
        for result in results
        for measure, value in (result.evaluation.measures | result.training_measures).items()
    )
    return Table(f"{stem}measures_by_run", ("system", "seed", "measure", "value"), rows)


def unfinished_table(unfinished: Sequence[Failure], name: str = "unfinished") -> Table:
    """Runs that failed or did not finish, and why; they are part of no other table."""
    rows = tuple((failure.job.name, failure.reason) for failure in unfinished)
    return Table(name, ("run", "last log line"), rows, "These runs are in no table and no figure of this page.")


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
    return Table(name, ("setting", "value"), pairs(_shared_settings(results) | facts), "Settings of all runs.")


def _shared_settings(results: Sequence[Result]) -> dict[str, object]:
    """Those with one value in all runs."""
    every = [result.directory.read_record().settings.to_values() for result in results]
    return {key: every[0][key] for key in _COMMON if all(settings[key] == every[0][key] for settings in every)}


def pairs(values: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Names and values as the rows of a table."""
    return tuple((key.replace("_", " "), "-" if value is None else str(value)) for key, value in values.items())


def stem(title: str) -> str:
    """A title as the beginning of a table's file name.

    >>> stem("Sine waves: ")
    'sine_waves_'
    """
    words = "".join(c if c.isalnum() else " " for c in title.lower()).split()
    return "".join(f"{word}_" for word in words)

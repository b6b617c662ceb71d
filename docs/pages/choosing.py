"""The tables of the page on what to choose, from kept rows; the text between them is written by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from docs.pages import blocks

from wiseale import config, registry
from wiseale.errors import RunError
from wiseale.experiments import systems as s
from wiseale.experiments.intervals import MINIMUM_SEEDS, adjusted_confidence, difference_interval, estimate
from wiseale.paper import LEARNED_NOISE, TORCH_WEIGHTS
from wiseale.paper.rows import Condition, RunRow, Values, conditions_of, values_of
from wiseale.paper.sweep import weights_tables
from wiseale.report.document import Block, Paragraph, Table, to_block
from wiseale.report.tables import estimate_cell

MEASURES = {"mse": "MSE", "reconstruction": "reconstruction", "kl_aggregate_mc": "aggregate KL", "elbo": "ELBO"}
ESTIMATORS = (
    *(s.WISE_ALE.name, "WiSE-ALE, Bhattacharyya bound", "WiSE-ALE, Monte Carlo"),
    *("WiSE-ALE, bank of 256", "WiSE-ALE, bank of 1024"),  # of an earlier version: their rows are kept
)
_CODES = {
    "mse_at_mu": "MSE from posterior means",
    "elbo": "ELBO",
    "kl_aggregate_mc": "aggregate KL",
    "jensen_shannon_mc": "Jensen–Shannon divergence from the prior",
    "code_coverage": "coverage of the prior",
    "mutual_information": "mutual information",
    "separation": "separation",
    "reconstruction_rise": "rise when codes move",
}
_BESIDE = {
    "mse": "MSE",
    "kl_aggregate_mc": "aggregate KL",
    "code_coverage": "coverage of the prior",
    "active_units": "active units",
    "elbo": "ELBO",
}
_JOINTLY = "Welch's intervals, which hold jointly with 95 % in this table (Bonferroni)."


def fill_in(page: str, rows: Sequence[RunRow], scale: str = "paper") -> str:
    """The page with every table computed from the rows at one scale; unknown or unended tables are refused."""

    def table(name: str) -> str:
        kind, _, experiment = name.partition(" ")
        return "\n\n".join(to_block(block) for block in table_of(kind, experiment, rows, scale))

    return blocks.fill_in(page, "results", table)


def table_of(kind: str, experiment: str, rows: Sequence[RunRow], scale: str) -> list[Block]:
    """One kind of table of an experiment; a sentence where its runs are missing."""
    kinds: dict[str, Callable[[Sequence[RunRow], Condition], list[Block]]] = {
        "weights": _weights,
        "codes": _codes,
        "estimators": _estimators,
        "init": partial(_beside, _INIT),
        "noise": partial(_beside, _NOISE),
    }
    if kind not in kinds or experiment not in registry.EXPERIMENTS:
        raise RunError(f"no table {kind!r} of {experiment!r}: known are {', '.join(kinds)} of the paper's experiments")
    conditions = conditions_of(rows, scale).get(experiment)
    if not conditions:
        return [Paragraph(f"Not measured yet: {experiment} has no run at scale '{scale}'.")]
    return [Paragraph(f"{conditions[0]}."), *kinds[kind](rows, conditions[0])]


def _weights(rows: Sequence[RunRow], condition: Condition) -> list[Block]:
    tables = weights_tables(rows, condition)
    return [*tables] if tables[0].rows else [Paragraph("Not measured yet: no weight has runs of both systems.")]


def _codes(rows: Sequence[RunRow], condition: Condition) -> list[Block]:
    """WiSE-ALE at weight 1 beside AEVB, without and with a warm-up of its KL, in every measure of the codes."""
    values = values_of(rows, condition)
    rivals = [rival.name for rival in (s.AEVB, s.AEVB_WARM_UP) if rival.name in values]
    ours = values.get(s.WISE_ALE.name, {})
    measures = {name: title for name, title in _CODES.items() if name in ours}
    confidence = adjusted_confidence(len(measures) * len(rivals))
    lines = []
    for name, title in measures.items():
        cells = [_cell(values, s.WISE_ALE.name, name)]
        for rival in rivals:
            cells += [_cell(values, rival, name), _difference(ours[name], values[rival].get(name, ()), confidence)]
        lines.append((title, *cells))
    if not rivals or not lines:
        return [Paragraph("Not measured yet: no run of WiSE-ALE at weight 1 and AEVB.")]
    columns = ("measure", s.WISE_ALE.name, *(title for rival in rivals for title in (rival, "difference")))
    caption = f"The differences, WiSE-ALE minus the other, have {_JOINTLY}"
    return [Table(f"codes_{condition.experiment}", columns, tuple(lines), caption)]


@dataclass(frozen=True)
class _Control:
    """Runs that differ from the experiment's own in one setting.

    Attributes:
        name: the control's in ``runs.csv``.
        setting: the attribute of a condition in which the two differ.
        what: the setting's values in words, from a condition.
        missing: what is said where there are no such runs.
    """

    name: str
    setting: Literal["network", "likelihood"]
    what: Callable[[Condition], str]
    missing: str

    def alike(self, condition: Condition) -> Condition:
        """The condition without the control's name and without what the control changes."""
        if self.setting == "likelihood":
            return replace(condition, control="", likelihood="")
        network = replace(config.build("network", condition.network), init="torch")
        return replace(condition, control="", init="", network=config.spec_of("network", network))


def _noise(condition: Condition) -> str:
    learned = getattr(config.build("likelihood", condition.likelihood), "x_sigma", None) == "learned"
    return "learned noise" if learned else "noise fixed at 1"


_INIT = _Control(TORCH_WEIGHTS, "network", lambda one: f"{one.init} weights", "with torch's initial weights")
_NOISE = _Control(LEARNED_NOISE, "likelihood", _noise, "with learned noise")


def _beside(control: _Control, rows: Sequence[RunRow], condition: Condition) -> list[Block]:
    """Each system with the experiment's own setting and with the control's, and the difference in MSE."""
    others = conditions_of(rows, condition.scale, control.name).get(condition.experiment, [])
    other = next((one for one in others if control.alike(one) == control.alike(condition)), None)
    if other is None:
        return [Paragraph(f"Not measured yet: no run {control.missing} ({control.name}).")]
    here, there = values_of(rows, condition), values_of(rows, other)
    names = [name for name in here if name in there]
    confidence = adjusted_confidence(len(names))
    lines = []
    for name in names:
        pairs = [f"{_cell(here, name, measure)} / {_cell(there, name, measure)}" for measure in _BESIDE]
        lines.append((name, pairs[0], _difference(here[name]["mse"], there[name]["mse"], confidence), *pairs[1:]))
    first, *further = _BESIDE.values()
    pair = f"{control.what(condition).capitalize()} / {control.what(other)}"
    caption = f"{pair}. The differences, the first minus the second, have {_JOINTLY}"
    columns = ("system", first, "difference", *further)
    return [Table(f"{control.name}_{condition.experiment}", columns, tuple(lines), caption)]


def _estimators(rows: Sequence[RunRow], condition: Condition) -> list[Block]:
    """The paper's bound beside the other estimators and the bank, all at weight 1."""
    values = values_of(rows, condition)
    names = [name for name in ESTIMATORS if name in values]
    if len(names) < 2:
        return [Paragraph("Not measured yet: no run with another estimator or a bank.")]
    lines = []
    for name in names:
        seeds = max(map(len, values[name].values()))
        lines.append((name, str(seeds), *(_cell(values, name, measure) for measure in MEASURES)))
    return [Table(f"estimators_{condition.experiment}", ("system", "seeds", *MEASURES.values()), tuple(lines))]


def _difference(first: Sequence[float], second: Sequence[float], confidence: float) -> str:
    if min(len(first), len(second)) < MINIMUM_SEEDS:
        return f"fewer than {MINIMUM_SEEDS} seeds"
    return str(difference_interval(first, second, confidence))


def _cell(values: Values, name: str, measure: str) -> str:
    seeds = values[name].get(measure)
    return estimate_cell(estimate(seeds) if seeds else None)

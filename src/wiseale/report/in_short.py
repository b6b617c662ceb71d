"""A run in plain sentences: what was trained on what, how well it reconstructs, and which units of the code it uses.

Every number is read from the run's config.json or evaluation.json.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wiseale.errors import counted
from wiseale.evaluation.record import Evaluation
from wiseale.figures.words import data_in_words, listed, objective_in_words
from wiseale.models.collapse import ENOUGH_ROWS
from wiseale.runs.record import RunRecord

_MOST_COLUMNS = 4
_KINDS = {1: "row", 2: "signal", 3: "image"}


def lead(record: RunRecord, evaluation: Evaluation) -> str:
    """What was trained on what, and on which rows it was measured."""
    settings, facts = record.settings, record.facts
    system = objective_in_words(settings.spec("objective"))
    kind = _KINDS[len(facts.x_shape)]
    numbers = counted(settings.latent_dim, "number")
    of = {"held out": "held out of training", "test": "of the test set"}.get(evaluation.split, "")
    if evaluation.data != settings.data:
        of = f"of {data_in_words(evaluation.data)}"
    return (
        f"A model that turns each {kind} of {data_in_words(settings.data)} into {numbers}, its code, and back. It was "
        f"trained with {system} on {counted(facts.n_train, kind)}, and measured on "
        f"{counted(evaluation.n_eval, kind)} {of}".rstrip()
        + "."
    )


def in_short(record: RunRecord, evaluation: Evaluation) -> tuple[str, ...]:
    """How well rows are reconstructed from their codes, which units of the code are used, and how sure that is."""
    kind, latent_dim = _KINDS[len(record.facts.x_shape)], record.settings.latent_dim
    sentences = [*_columns(evaluation), *_levels(evaluation)] or _values(record, evaluation)
    if evaluation.n_eval < ENOUGH_ROWS:
        are = "is" if evaluation.n_eval == 1 else "are"
        sentences.append(f"{counted(evaluation.n_eval, kind)} {are} few: other ones would give other numbers.")
    return (*sentences, *_units(latent_dim, evaluation))


def _columns(evaluation: Evaluation) -> list[str]:
    """The typical errors of numbers in the user's units; of many columns, how many are better than their mean."""
    errors = [one for one in _beside_baseline(evaluation, "rmse") if one[2] > 0]
    if not errors:
        return []
    best = sorted(errors, key=lambda one: one[1] / one[2])
    examples = errors if len(errors) <= _MOST_COLUMNS else [*best[:2], *best[-2:]]
    values = listed([f"{column} {_number(error)} ({_number(mean)})" for column, error, mean in examples])
    if len(errors) == 1:
        return [
            f'Reconstructed from the code, the column "{errors[0][0]}" has a root mean squared error of '
            f"{_number(errors[0][1])} ({_number(errors[0][2])} if its mean were always answered)."
        ]
    which = "" if len(examples) == len(errors) else f", the two best and the two worst of {len(errors)} columns"
    share = sorted(1 - (error / mean) ** 2 for _, error, mean in errors)
    middle = (share[(len(share) - 1) // 2] + share[len(share) // 2]) / 2
    return [
        "Reconstructed from the code, columns of numbers have these root mean squared errors, in their own units"
        f"{which} (in brackets: always answering the column's mean): {values}. In the median column, "
        f"{max(0.0, middle):.0%} of the variance is explained."
    ]


def _levels(evaluation: Evaluation) -> list[str]:
    """The share of right levels in columns with categories, on average; constant columns need no model."""
    shares = [one for one in _beside_baseline(evaluation, "accuracy") if one[2] < 1]
    if not shares:
        return []
    right = math.fsum(accuracy for _, accuracy, _ in shares) / len(shares)
    usual = math.fsum(baseline for _, _, baseline in shares) / len(shares)
    where = f'the column "{shares[0][0]}"' if len(shares) == 1 else f"{len(shares)} columns of categories"
    mean = "" if len(shares) == 1 else " on average"
    return [
        f"In {where}, the level comes back right in {right:.0%} of the cells{mean} ({usual:.0%} if the most frequent "
        "level were always answered)."
    ]


def _values(record: RunRecord, evaluation: Evaluation) -> list[str]:
    """The squared error of values that are not the columns of a table."""
    mse = evaluation.measures.get("mse_at_mu")
    if mse is None:
        return []
    if record.facts.standardized != "none":
        return [
            f"Reconstructed from the code, values have a mean squared error of {_number(mse)}, where 1 is the variance "
            "of the values that were trained on."
        ]
    what = "pixels" if len(record.facts.x_shape) == 3 else "values"
    return [f"Reconstructed from the code, {what} are off by {_number(math.sqrt(mse))} (root mean squared error)."]


def _units(latent_dim: int, evaluation: Evaluation) -> list[str]:
    use = evaluation.code_use
    if use is None or use.collapsed:  # the report has a note on collapse
        return []
    if use.active_units >= latent_dim:
        every = {1: "The only unit of the code is", 2: "Both units of the code are"}
        return [f"{every.get(latent_dim, f'All {latent_dim} units of the code are')} used."]
    idle = latent_dim - use.active_units
    others = "the other one hardly varies" if idle == 1 else f"the other {idle} hardly vary"
    used = f"{use.active_units} of {latent_dim} units of the code {'is' if use.active_units == 1 else 'are'} used"
    return [f"{used}; {others} from one code to the next."]


def _beside_baseline(evaluation: Evaluation, measure: str) -> Sequence[tuple[str, float, float]]:
    """Columns with a measure and what it is without a model."""
    columns = []
    for name, value in evaluation.measures.items():
        column = name.removeprefix(f"{measure}:")
        baseline = evaluation.measures.get(f"{measure}_baseline:{column}")
        if name != column and value is not None and baseline is not None:
            columns.append((column, value, baseline))
    return columns


def _number(value: float) -> str:
    """About three digits, without an exponent where that is short.

    >>> _number(214.24), _number(63582.4), _number(0.0314)
    ('214', '63,582', '0.0314')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"

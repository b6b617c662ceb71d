"""What a run directory knows of its model, for the model card."""

from __future__ import annotations

import dataclasses

from wiseale.config import TrainConfig
from wiseale.errors import counted
from wiseale.evaluation.record import Evaluation
from wiseale.models.card import Provenance
from wiseale.runs.directory import read
from wiseale.runs.run import Run


def provenance(run: Run) -> Provenance:
    """How the run's model was trained and, where the run has been evaluated, what was measured."""
    facts, path = run.facts, run.directory.evaluation
    settings = TrainConfig(**run.settings.to_values())
    trained = Provenance(settings, facts.prior_weight, facts.n_train, facts.n_held_out)
    if not path.exists():
        return trained
    evaluation = read(Evaluation, path)
    rows = f"{counted(evaluation.n_eval, 'row')} ({evaluation.split})"
    return dataclasses.replace(trained, measures=evaluation.measures, evaluated_on=rows)

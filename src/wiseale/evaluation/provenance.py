"""What a run directory knows of its model, for the model card."""

from __future__ import annotations

import dataclasses

from wiseale.errors import counted
from wiseale.evaluation.record import Evaluation
from wiseale.models.card import Provenance
from wiseale.runs.directory import RunDirectory, read


def provenance(run: RunDirectory) -> Provenance:
    """How the run's model was trained and, where the run has been evaluated, what was measured."""
    record = run.read_record()
    facts = record.facts
    trained = Provenance(record.settings, facts.prior_weight, facts.n_train, facts.n_held_out)
    if not run.evaluation.exists():
        return trained
    evaluation = read(Evaluation, run.evaluation)
    rows = f"{counted(evaluation.n_eval, 'row')} ({evaluation.split})"
    return dataclasses.replace(trained, measures=evaluation.measures, evaluated_on=rows)

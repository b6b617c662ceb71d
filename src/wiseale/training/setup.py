"""Builds what the training loop needs from resolved settings and data: a learner at step 0, batches, the plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wiseale.config import SettingError, TrainConfig
from wiseale.data import Dataset
from wiseale.data.defaults import suit
from wiseale.models.model_file import ModelConfig, load_model
from wiseale.networks.model import Model, parameter_count, seeded
from wiseale.objectives import make_objective
from wiseale.processes.world import ALONE, World
from wiseale.randomness import derive_seed
from wiseale.training.batches import Batches, fit_units
from wiseale.training.learner import Learner
from wiseale.training.plan import Plan, make_plan
from wiseale.training.records import RunFacts
from wiseale.training.split import Indices, RowsExcept, split_rows
from wiseale.training.start import fit_features, start_at_pca


@dataclass
class Work:
    """Everything the loop needs, built from resolved settings and data."""

    learner: Learner
    train: Batches
    held_out: Batches | None
    plan: Plan
    model_config: ModelConfig
    facts: RunFacts
    world: World

    @classmethod
    def prepare(cls, resolved: TrainConfig, dataset: Dataset, world: World = ALONE) -> Work:
        """A learner at step 0 and its batches; nothing outside is changed."""
        assert resolved.network and resolved.likelihood and resolved.latent_dim  # noqa: PT018
        dataset = suit(dataset, resolved.likelihood)
        train_rows, held_rows = split_rows(len(dataset.train), resolved)
        plan = make_plan(resolved)
        objective = make_objective(resolved.objective).at_scale(plan.batch_size, len(train_rows))
        model_config = ModelConfig(
            network=resolved.network,
            likelihood=resolved.likelihood,
            objective=resolved.objective,
            space=dataset.space,
            latent_dim=resolved.latent_dim,
            data_fingerprint=dataset.fingerprint,
        )
        with seeded(derive_seed(resolved.seed, "weights")):
            model = model_config.build()
            called = objective.build(dataset.space, resolved.latent_dim)
        model.units = fit_units(dataset, train_rows, resolved.seed)
        learner = Learner.fresh(model, called, plan.lr)
        learner.modules.to(resolved.device)
        facts = RunFacts(
            prior_weight=objective.effective_weight(plan.batch_size, len(train_rows)),
            steps_per_epoch=len(train_rows) // plan.batch_size,
            n_train=len(train_rows),
            n_held_out=len(held_rows),
            x_shape=dataset.x_shape,
            parameters=parameter_count(learner.modules),
            standardized=dataset.space.scaling,
            data_fingerprint=dataset.fingerprint,
        )

        def batches(rows: Indices | RowsExcept) -> Batches:
            return Batches(
                dataset.train,
                rows,
                units=model.units,
                device=resolved.device,
                seed=resolved.seed,
                copies=world.local_size,
            )

        train, held_out = batches(train_rows), batches(held_rows) if len(held_rows) else None
        fit_features(learner.modules, dataset.space, train, resolved.seed)
        if model.linear is not None:
            start_at_pca(model, train, resolved.seed)
        return cls(learner, train, held_out, plan, model_config, facts, world)


def take_weights(model: Model, init_from: str | None) -> None:
    """Copy the weights of a finished run or a model directory into a model; it keeps its own standardizer."""
    if init_from is None:
        return
    source, _ = load_model(Path(init_from))
    source.units, source.prior = model.units, None
    given, own = source.state_dict(), model.state_dict()
    for name in sorted(given.keys() | own.keys()):
        shapes = [list(state[name].shape) if name in state else "none" for state in (given, own)]
        if shapes[0] != shapes[1]:
            problem = f"{init_from} does not fit this run's network: {name} is {shapes[0]} there and {shapes[1]} here"
            raise SettingError("init_from", problem)
    model.load_state_dict(given)

"""Builds what the training loop needs from resolved settings and data: a learner at step 0, batches, the plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wiseale.config import SettingError
from wiseale.data import Dataset
from wiseale.data.defaults import suit
from wiseale.models.collapse import ENOUGH_ROWS, ROWS, CodeUse, code_use_of
from wiseale.models.model_file import ModelConfig, load_model
from wiseale.networks.model import Model, parameter_count, seeded
from wiseale.processes.world import ALONE, World
from wiseale.randomness import derive_seed, shuffled
from wiseale.training.batches import Batches, Indices, split_rows
from wiseale.training.learner import Learner
from wiseale.training.settings import RunFacts, RunSettings
from wiseale.training.start import fit_features, start_at_pca


@dataclass
class Work:
    """Everything the loop needs, built from resolved settings and data."""

    learner: Learner
    train: Batches
    held_out: Batches | None
    settings: RunSettings
    model_config: ModelConfig
    facts: RunFacts
    world: World

    @classmethod
    def prepare(cls, settings: RunSettings, dataset: Dataset, world: World = ALONE) -> Work:
        """A learner at step 0 and its batches; nothing outside is changed."""
        dataset = suit(dataset, settings.spec("likelihood"))
        train_rows, held_rows = split_rows(len(dataset.train), settings.held_out, settings.held_out_most, settings.seed)
        objective = settings.objective.at_scale(settings.batch_size, len(train_rows))
        model_config = ModelConfig(
            network=settings.spec("network"),
            likelihood=settings.spec("likelihood"),
            objective=settings.spec("objective"),
            space=dataset.space,
            latent_dim=settings.latent_dim,
            data_fingerprint=dataset.fingerprint,
        )
        with seeded(derive_seed(settings.seed, "weights")):
            model = model_config.build()
            called = objective.build(dataset.space, settings.latent_dim)
        model.units = dataset.space.fit_units(dataset.train.x, train_rows)
        learner = Learner.fresh(model, called, settings.lr)
        learner.modules.to(settings.device)
        facts = RunFacts(
            prior_weight=objective.effective_weight(settings.batch_size, len(train_rows)),
            steps_per_epoch=len(train_rows) // settings.batch_size,
            n_train=len(train_rows),
            n_held_out=len(held_rows),
            x_shape=dataset.x_shape,
            parameters=parameter_count(learner.modules),
            standardized=dataset.space.scaling,
            data_fingerprint=dataset.fingerprint,
        )

        def batches(rows: Indices) -> Batches:
            return Batches(
                dataset.train,
                rows,
                units=model.units,
                device=settings.device,
                seed=settings.seed,
                copies=world.local_size,
            )

        train, held_out = batches(train_rows), batches(held_rows) if len(held_rows) else None
        fit_features(learner.modules, dataset.space, train, settings.seed)
        if model.linear is not None:
            start_at_pca(model, train, settings.seed)
        return cls(learner, train, held_out, settings, model_config, facts, world)

    def code_use(self) -> CodeUse | None:
        """How much the trained model's codes say about x, on at most 1,000 rows, drawn at random.

        Held-out rows where there are enough, otherwise training rows; None where all of them are the same.
        """
        rows = self.held_out if self.held_out is not None and len(self.held_out) >= ENOUGH_ROWS else self.train
        x = rows.read(shuffled(len(rows), self.settings.seed, "evaluate")[:ROWS].sort().values)
        if bool((x == x[:1]).all()):  # one row, or copies of it: there is nothing to encode
            return None
        return code_use_of(self.learner.model, x, self.settings.seed)


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

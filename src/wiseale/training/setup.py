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
from wiseale.platform.machine import require_memory
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
        network, likelihood, objective = (settings.spec(name) for name in ("network", "likelihood", "objective"))
        dataset = suit(dataset, likelihood)
        space, latent_dim, seed = dataset.space, settings.latent_dim, settings.seed
        config = ModelConfig(network, likelihood, objective, space, latent_dim, dataset.fingerprint)
        # The weights themselves, their gradients, Adam's two moments, the best so far, and the copy of weights and
        # moments that is being saved.
        what = f"training network {network} with a latent dimension of {latent_dim}"
        require_memory(8 * config.bytes(), what, "choose smaller sizes")

        train_rows, held_out_rows = split_rows(len(dataset.train), settings.held_out, settings.held_out_most, seed)
        scaled = settings.objective.at_scale(settings.batch_size, len(train_rows))
        with seeded(derive_seed(seed, "weights")):
            model = config.build()
            called = scaled.build(space, latent_dim)
        model.units = space.fit_units(dataset.train.x, train_rows)
        learner = Learner.fresh(model, called, settings.lr)
        learner.modules.to(settings.device)
        facts = RunFacts(
            prior_weight=scaled.effective_weight(settings.batch_size, len(train_rows)),
            steps_per_epoch=len(train_rows) // settings.batch_size,
            n_train=len(train_rows),
            n_held_out=len(held_out_rows),
            x_shape=dataset.x_shape,
            parameters=parameter_count(learner.modules),
            standardized=space.scaling,
            data_fingerprint=dataset.fingerprint,
        )

        def batches(rows: Indices) -> Batches:
            place = settings.device
            return Batches(dataset.train, rows, units=model.units, device=place, seed=seed, copies=world.local_size)

        train, held_out = batches(train_rows), batches(held_out_rows) if len(held_out_rows) else None
        fit_features(learner.modules, space, train, seed)
        if model.linear is not None:
            start_at_pca(model, train, seed)
        return cls(learner, train, held_out, settings, config, facts, world)

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

"""Trains a few steps of every system and writes the gradients: run by one process, or as one of two ranks."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tests.journals import MemoryJournal
from tests.objectives.specs import SPECS, small

from wiseale.config import TrainConfig
from wiseale.data.dataset import Dataset, Preset, Rows
from wiseale.processes.collectives import gather
from wiseale.processes.group import process_group
from wiseale.processes.world import ALONE, from_environment
from wiseale.spaces import plain_space
from wiseale.training.loop import fit
from wiseale.training.plan import resolve
from wiseale.training.setup import Work

WITH_BATCH_NORM = "paper_celeba:width=0.02"
CONFIG = TrainConfig(data="X", network="mlp:hidden=12", latent_dim=2, batch_size=8, max_epochs=1, held_out=0.5)


class Doubled:
    """Batches in float64, where rounding hides nothing."""

    def __init__(self, batches):
        self._batches = batches

    def __len__(self):
        return len(self._batches)

    def read(self, positions, counter=0):
        return self._batches.read(positions, counter).double()

    def read_part(self, positions, counter, part):
        return self._batches.read_part(positions, counter, part).double()


def train(spec, world, batch_size=CONFIG.batch_size):
    """Gradients before each optimiser step, terms of the epoch and the state at its end, by name."""
    network = WITH_BATCH_NORM if spec == WITH_BATCH_NORM else CONFIG.network
    shape = (3, 64, 64) if spec == WITH_BATCH_NORM else (5,)
    x = np.random.default_rng(0).normal(size=(48, *shape)).astype(np.float32)
    dataset = Dataset("X", Rows(x), None, Preset("mlp", "gaussian", 2), "", plain_space(x.shape[1:]))
    objective = "wise_ale" if spec == WITH_BATCH_NORM else small(spec)
    asked = replace(CONFIG, objective=objective, network=network, batch_size=batch_size)
    work = Work.prepare(resolve(asked, dataset), dataset, world)
    work.learner.modules.double()
    found = {}
    for name, optimizer in work.learner.optimizers.items():
        optimizer.step_at = recorded(optimizer, found, name)
    journal = MemoryJournal()
    assert fit(work.learner, Doubled(work.train), Doubled(work.held_out), work.settings, journal, world)
    (record,) = journal.records
    for split in ("train", "held_out"):
        found |= {f"{split} {name}": torch.tensor(value) for name, value in getattr(record, split).items()}
    found |= {f"at end {name}": value.clone() for name, value in work.learner.modules.state_dict().items()}
    return {f"{spec}|{name}": value for name, value in found.items()}


def recorded(optimizer, found, name):
    """The optimiser's step, which keeps the gradients that it is about to use."""
    step_at = optimizer.step_at

    def keep_and_step(lr):
        step = sum(key.startswith(f"gradient {name}") for key in found)
        found[f"gradient {name} {step}"] = torch.cat([p.grad.flatten() for p in optimizer.parameters]).clone()
        step_at(lr)

    return keep_and_step


def train_all(world=ALONE, specs=(*SPECS, WITH_BATCH_NORM)):
    found = {}
    for spec in specs:
        found |= train(spec, world)
    return found


def gathered(world):
    """Everyone's rows, and this rank's gradient of a loss that all ranks compute alike."""
    rows = (torch.arange(6.0).view(3, 2) + 10 * world.rank).requires_grad_()
    everyone = gather(rows, world)
    everyone.square().sum().backward()
    return {"rows": everyone.detach(), "gradient": rows.grad}


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = from_environment()
    with process_group(here, "cpu"):
        if len(sys.argv) > 2:  # one system and its batch size
            found = train(sys.argv[2], here, int(sys.argv[3]))
        else:
            found = train_all(here) | {f"gather|{name}": value for name, value in gathered(here).items()}
        save_file(found, Path(sys.argv[1]) / f"{here.rank}.safetensors")

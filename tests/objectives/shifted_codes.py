"""Train, through the real loop, an auto-encoder whose codes start as N(3, 0.2²) in each dimension."""

from dataclasses import dataclass

import numpy as np
import torch
from tests.journals import MemoryJournal
from torch import nn

from wiseale.data.dataset import Rows
from wiseale.likelihoods import GaussianSettings
from wiseale.networks.model import Model, NetworkSettings, seeded
from wiseale.objectives import make_objective
from wiseale.spaces import plain_space
from wiseale.training.batches import Batches
from wiseale.training.learner import Learner
from wiseale.training.loop import fit
from wiseale.training.settings import Constant, Plan

D = 2


@dataclass(frozen=True)
class Affine(NetworkSettings):
    """Codes are an affine function of x, so their distribution is Gaussian and known at any time."""

    def encoder(self, shape):
        return nn.Identity(), shape[0]

    def decoder(self, latent_dim, shape):
        return nn.Linear(latent_dim, shape[0])


def train_shifted_codes(spec, epochs, lr=1e-2, seed=0):
    """Codes (2000, 2) before and after training on x ~ N(0, I), and the records of the epochs of 31 steps each."""
    objective = make_objective(spec)
    with seeded(seed):
        model = Model(Affine(), plain_space((D,)), D, GaussianSettings(), objective.stochastic)
        called = objective.build(model.space, D)
    with torch.no_grad():
        model.head.mu.weight.copy_(0.2 * torch.eye(D))
        model.head.mu.bias.fill_(3.0)
        if objective.stochastic:
            model.head.sigma.weight.zero_()
            model.head.sigma.bias.fill_(-4.0)  # softplus(−4) = 0.018: the codes' spread is that of the means
    x = np.random.default_rng(seed).normal(size=(2000, D)).astype(np.float32)
    noise = torch.randn(2000, D, generator=torch.Generator().manual_seed(1))

    def codes():
        with torch.no_grad():
            return model.encode(torch.from_numpy(x)).sample(noise)

    before, journal = codes(), MemoryJournal()
    plan = Plan(batch_size=64, max_epochs=epochs, lr=lr, lr_schedule=Constant(), seed=seed)
    fit(Learner.fresh(model, called, lr), Batches(Rows(x)), None, plan, journal)
    return before, codes(), journal.records


def assert_moved_onto_the_prior(before, after, tolerance=0.25):
    """Far from N(0, I) before, near it after: mean, standard deviation and correlation of the dimensions."""
    assert float((before.mean(0) - 3).abs().max()) < 0.1
    assert float((before.std(0) - 0.2).abs().max()) < 0.05
    assert float(after.mean(0).abs().max()) < tolerance
    assert float((torch.cov(after.T) - torch.eye(D)).abs().max()) < 2 * tolerance

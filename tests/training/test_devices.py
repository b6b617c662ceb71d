"""A step of every system on a device that is not the CPU: "meta", whose tensors have shapes and no values.

Operations on tensors of two devices raise there as on a GPU. Float64, which Apple's GPUs lack, is refused.
"""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from tests.objectives.specs import SPECS, small
from torch.utils._python_dispatch import TorchDispatchMode

from wiseale import config, registry
from wiseale.likelihoods import GaussianSettings
from wiseale.networks.model import Model
from wiseale.objectives import make_objective
from wiseale.processes.world import ALONE
from wiseale.spaces import plain_space
from wiseale.training.learner import Learner
from wiseale.training.settings import Constant, Plan
from wiseale.training.step import adversarial_losses, adversarial_steps, terms_of_batch

BATCH, LATENT = 16, 3
PLAN = Plan(batch_size=BATCH, max_epochs=1, lr=1e-3, lr_schedule=Constant())


class NoFloat64(TorchDispatchMode):
    """Refuses float64 on the device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for one in found if isinstance(found, tuple | list) else [found]:
            if isinstance(one, torch.Tensor) and one.device.type == "meta":
                assert one.dtype != torch.float64, f"{func} makes float64 on the device"
        return found


@pytest.fixture(autouse=True)
def device(monkeypatch):
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # it knows no device "meta"
    with NoFloat64():
        yield


def learner_of(objective, network, shape):
    made = make_objective(objective)
    model = Model(config.build("network", network), plain_space(shape), LATENT, GaussianSettings(), made.stochastic)
    learner = Learner.fresh(model, made.build(model.space, LATENT), 1e-3)
    learner.modules.to("meta")
    return learner


def step(learner, shape):
    x = torch.zeros(BATCH, *shape, device="meta")
    terms, _ = terms_of_batch(learner, x, PLAN, "noise", 0, ALONE)
    terms.loss.backward()
    losses = adversarial_losses(learner, ALONE)
    still = SimpleNamespace(defaults={"lr": 1.0}, clear=lambda: None, step_at=lambda lr: None)
    learner.optimizers = dict.fromkeys(learner.optimizers, still)
    adversarial_steps(learner, losses, terms, x, PLAN, 1.0, ALONE)
    gradients = [parameter.grad for parameter in learner.modules.parameters() if parameter.grad is not None]
    assert gradients
    assert all(gradient.device.type == "meta" for gradient in gradients)


@pytest.mark.parametrize("objective", SPECS)
def test_every_system(objective):
    step(learner_of(small(objective), "mlp:hidden=16", (6,)), (6,))


@pytest.mark.parametrize("network", registry.names("network"))
def test_every_network(network):
    shape = registry.lookup("network", network).example_shape
    step(learner_of("wise_ale", network, shape), shape)

"""Our Adam makes torch's steps."""

import copy

import pytest
import torch
from torch import nn

from wiseale.training.optimiser import Adam


def networks():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return network, copy.deepcopy(network)


def take_gradient(network, seed, leave_out=()):
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
    network.zero_grad()
    network(x).square().sum().backward()
    for index in leave_out:
        list(network.parameters())[index].grad = None


@pytest.mark.parametrize("left_out", [{}, {0: (1,)}, {2: (0, 3)}], ids=["all", "at first", "later"])
def test_steps_are_torchs(left_out):
    """Also where some parameter has no gradient at some step, and after a restart."""
    ours, theirs = networks()
    adam = Adam(ours.parameters(), 1e-2, betas=(0.5, 0.9))
    reference = torch.optim.Adam(theirs.parameters(), lr=1e-2, betas=(0.5, 0.9))
    for step in range(6):
        rate = 1e-2 / (step + 1)
        for network in (ours, theirs):
            take_gradient(network, step, left_out.get(step, ()))
        adam.advance(rate)
        reference.param_groups[0]["lr"] = rate
        reference.step()
        if step == 3:
            state = copy.deepcopy(adam.state_dict())
            adam = Adam(ours.parameters(), 1.0, betas=(0.5, 0.9))
            adam.load_state_dict(state)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_are_forgotten():
    network, _ = networks()
    adam = Adam(network.parameters(), 1e-2)
    take_gradient(network, 0)
    adam.clear()
    assert all(parameter.grad is None for parameter in network.parameters())


def test_steps_are_counted_whoever_asks():
    """Also by torch's own ``step``, and in a copy."""
    ours, theirs = networks()
    adam, reference = Adam(ours.parameters(), 1e-2), torch.optim.Adam(theirs.parameters(), lr=1e-2)
    for step in range(6):
        for network in (ours, theirs):
            take_gradient(network, step)
        if step == 4:
            adam.step()
        else:
            adam.advance(1e-2)
        reference.step()
        assert copy.deepcopy(adam).state_dict()["state"][0]["step"] == step + 1
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b)

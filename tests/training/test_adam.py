"""Adam with one step count makes torch's steps."""

import copy

import pytest
import torch
from torch import nn

from wiseale.training.learner import Adam


def take_gradient(network, seed, leave_out=()):
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed))
    network.zero_grad()
    network(x).square().sum().backward()
    for index in leave_out:
        list(network.parameters())[index].grad = None


@pytest.mark.parametrize("left_out", [{}, {0: (1,)}, {2: (0, 3)}], ids=["all", "at first", "later"])
def test_steps_are_torchs(left_out):
    """Also where some parameter has no gradient at some step, and after a restart."""
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    theirs = copy.deepcopy(ours)
    adam = Adam(list(ours.parameters()), 1e-2, beta_1=0.5)
    reference = torch.optim.Adam(theirs.parameters(), lr=1e-2, betas=(0.5, 0.999), fused=True)
    for step in range(6):
        rate = 1e-2 / (step + 1)
        for network in (ours, theirs):
            take_gradient(network, step, left_out.get(step, ()))
        adam.step_at(rate)
        reference.param_groups[0]["lr"] = rate
        reference.step()
        for state, expected in zip(
            adam.state_dict()["state"].values(), reference.state_dict()["state"].values(), strict=True
        ):
            assert all(torch.equal(state[name], expected[name]) for name in expected)
        if step == 3:
            state = copy.deepcopy(adam.state_dict())
            adam = Adam(list(ours.parameters()), 1.0, beta_1=0.5)
            adam.load_state_dict(state)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)

"""Rows of bytes gathered by C are torch's, bit for bit."""

import pytest
import torch

from wiseale import kernels
from wiseale.kernels import gather_bytes

pytestmark = pytest.mark.skipif(not kernels.available(), reason=kernels.state())


@pytest.mark.parametrize("shape", [(50, 3, 9, 7), (50, 64), (50, 1), (50, 0), (50, 12288)])
@pytest.mark.parametrize("threads", [1, 2])
def test_gather_is_exact(shape, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    rows = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    chosen = torch.tensor([49, 0, 7, 7, 3])
    assert torch.equal(gather_bytes(rows, chosen, 1 / 255), rows[chosen].float().mul_(1 / 255))
    assert gather_bytes(rows, chosen[:0], 1 / 255).shape == (0, *shape[1:])


def test_positions_of_another_type_or_stride():
    rows = torch.arange(12, dtype=torch.uint8).view(4, 3)
    chosen = torch.tensor([3, 0, 1, 0], dtype=torch.int32)[::2]
    assert gather_bytes(rows, chosen, 1.0).tolist() == [[9, 10, 11], [3, 4, 5]]


def test_default_dtype_does_not_matter():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        gathered = gather_bytes(torch.full((2, 3), 255, dtype=torch.uint8), torch.tensor([1]), 1 / 255)
    finally:
        torch.set_default_dtype(before)
    assert gathered.dtype == torch.float32
    assert gathered.tolist() == [[1.0] * 3]


@pytest.mark.parametrize("wrong", [50, -1])
def test_positions_out_of_range(wrong):
    with pytest.raises(IndexError, match="there are 50"):
        gather_bytes(torch.zeros(50, 3, dtype=torch.uint8), torch.tensor([0, wrong]), 1.0)

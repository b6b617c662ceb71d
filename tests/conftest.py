import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    """Tests run beside each other: more threads would only get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

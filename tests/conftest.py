import pytest
import torch


def pytest_collection_modifyitems(items):
    """Long tests first: started last, one of them would keep a single process busy while the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(autouse=True)
def _one_thread():
    """Tests run beside each other: more threads would only get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)

"""A few trials of every group of ``make torture``."""

import random
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks under limits, reads /proc")

TRIALS = {
    "kills": 2,
    "signals": 1,
    "failing disk": 3,
    "damaged runs": 3,
    "damaged finished runs": 3,
    "damaged packs": 2,
    "hostile models": 8,
    "hostile settings": 4,
    "hostile data": 6,
    "concurrent writers": 1,
    "soak": 1,
}


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    from torture.groups import prepare

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("torture")
        patch.setenv("WISEALE_CACHE", str(folder / "subjects" / "cache"))
        yield prepare(folder)


def test_every_group_is_tried():
    from torture.groups import GROUPS

    assert set(TRIALS) == set(GROUPS)


@pytest.mark.parametrize(("group", "number"), [(group, n) for group, count in TRIALS.items() for n in range(count)])
def test_survives(subjects, tmp_path, group, number):
    from torture.groups import GROUPS

    assert GROUPS[group].trial(subjects, random.Random(f"test/{group}/{number}"), tmp_path) is None

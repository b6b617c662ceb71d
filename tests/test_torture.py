"""A few trials of every group of ``make torture``."""

import random
import sys

import pytest
from torture.fuzz import TARGETS, unexpected

from wiseale.errors import ConfigError

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="forks under limits, reads /proc"),
]

TRIALS = {
    "random kills": 2,
    "double kills": 2,
    "kills at file events": 2,
    "kills of two ranks": 0,  # tests/processes kills ranks
    "signals": 2,
    "power loss": 0,  # below: some states of each scenario
    "failing disk": 13,  # every command but `compare`, which starts interpreters
    "damaged runs": 3,
    "damaged finished runs": 3,
    "damaged packs": 2,
    "hostile models": 8,
    "hostile settings": 4,
    "hostile data": 6,
    "concurrent writers": 1,
    "contention": 0,  # takes minutes, and is about the machine; tests/platform checks what it rests on
    "soak": 0,  # below, in seconds
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
    from torture.attempts import Draws
    from torture.groups import GROUPS

    assert GROUPS[group].trial(subjects, Draws("test", group, number), tmp_path) is None


def test_memory_and_open_files_stay_flat(subjects, tmp_path):
    from torture.attempts import Draws
    from torture.writers import soak_trial

    assert soak_trial(subjects, Draws("test", "soak", 0), tmp_path, seconds=0) is None


@pytest.mark.parametrize("name", ["run", "model", "pack again"])
def test_survives_a_loss_of_power(subjects, tmp_path, name):
    from torture.power_trials import SCENARIOS, record_states

    record_states(subjects, name, tmp_path / "states")
    states = sorted((tmp_path / "states").iterdir())
    for number, path in enumerate(states[:: max(1, len(states) // 6)]):
        work = tmp_path / f"work-{number}"
        work.mkdir()
        assert SCENARIOS[name].judge(subjects, path, work) is None, path.name


@pytest.mark.parametrize("mistake", ["nothing is synced", "the old directory is removed too early"])
def test_a_loss_of_power_finds_mistakes(subjects, tmp_path, monkeypatch, mistake):
    """The recorder must tell a careful writer from one that forgets to sync, or removes before the rename is safe."""
    import shutil

    from torture.power_trials import SCENARIOS, record_states

    from wiseale.platform import atomic_files

    if mistake == "nothing is synced":
        monkeypatch.setattr(atomic_files, "sync", lambda path: None)
    else:
        exchange = atomic_files._exchange

        def hasty(first, second):
            swapped = exchange(first, second)
            shutil.rmtree(first)
            return swapped

        monkeypatch.setattr(atomic_files, "_exchange", hasty)
    record_states(subjects, "model", tmp_path / "states")
    monkeypatch.undo()
    (tmp_path / "work").mkdir()
    states = sorted((tmp_path / "states").iterdir())
    assert any(SCENARIOS["model"].judge(subjects, path, tmp_path / "work") for path in states)


@pytest.mark.parametrize("name", TARGETS)
def test_readers_accept_or_refuse(tmp_path, name):
    """Without the fuzzer: what it begins with is accepted; cut short or with a bit changed, read or refused."""
    target = TARGETS[name]
    for seed in target.seeds(tmp_path):
        target.read(seed, tmp_path)
        draws = random.Random(name)
        for place in draws.sample(range(len(seed)), min(40, len(seed))):
            changed = bytes([*seed[:place], seed[place] ^ (1 << draws.randrange(8)), *seed[place + 1 :]])
            for data in (seed[:place], changed):
                assert unexpected(target.read, data, tmp_path) is None


def test_the_fuzzer_tells_faults_from_refusals(tmp_path):
    def read(data, folder):
        raise (IndexError if data else ConfigError)("no such thing")

    assert unexpected(read, b"", tmp_path) is None
    assert "IndexError: no such thing" in unexpected(read, b"x", tmp_path)

"""`wiseale cache list|clean` removes what is of no use, and only what is its own."""

import numpy as np
import pytest
from tests.cli.commands import run

from wiseale.data.cache import cache_entries, remove_entry
from wiseale.data.images.pack import open_pack
from wiseale.data.images.pack_writer import pack_chunks
from wiseale.errors import DataError
from wiseale.platform.locks import exclusive_lock


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache with a pack, an interrupted one, a kernel, a dataset, and things that are not wiseale's."""
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path))
    x = np.arange(600, dtype=np.uint8).reshape(2, 3, 10, 10)
    pack_chunks(tmp_path / "packs" / "whole", 2, (3, 10, 10), lambda row: [x], {})

    def stopped(row):
        yield x
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack_chunks(tmp_path / "packs" / "stopped", 100, (3, 10, 10), stopped, {})
    for name in (
        "native/kernels-1.so",
        "native/kernels-1.so.sha256",
        "data/mnist/a",
        "mine/b/c",
        "packs/letter.partial/d",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x" * 10)
    return tmp_path


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_what_is_there(cache):
    found = {entry.name: (entry.kind, entry.bytes) for entry in cache_entries(cache)}
    assert found.keys() == {"packs/whole", "packs/stopped.partial", "native/kernels-1.so"}
    assert found["packs/whole"][0] == "pack"
    assert found["packs/whole"][1] == sum(path.stat().st_size for path in (cache / "packs" / "whole").iterdir())
    assert found["packs/stopped.partial"][0] == "interrupted pack"
    assert found["packs/stopped.partial"][1] > 100 * 300


def test_clean_leaves_what_is_needed_and_what_is_not_its_own(cache, capsys):
    before = files(cache)
    assert run(capsys, "cache", "list")[0] == 0
    code, out, _ = run(capsys, "cache", "clean")
    assert code == 0
    assert "removed packs/stopped.partial" in out
    gone = before - files(cache)
    assert gone
    assert all(name.startswith("packs/stopped.partial/") for name in gone)
    open_pack(cache / "packs" / "whole", check=True)


def test_clean_all_removes_what_can_be_made_again(cache, capsys):
    assert run(capsys, "cache", "clean", "--all")[0] == 0
    assert {name for name in files(cache) if not name.endswith(".lock")} == {
        *("data/mnist/a", "mine/b/c", "packs/letter.partial/d")
    }


def test_clean_by_name(cache, capsys):
    assert run(capsys, "cache", "clean", "packs/whole")[0] == 0
    with pytest.raises(DataError):
        open_pack(cache / "packs" / "whole")
    assert (cache / "packs" / "stopped.partial").exists()
    code, _, err = run(capsys, "cache", "clean", "data/mnist")
    assert (code, err) == (2, "wiseale: error: the cache holds no 'data/mnist': see `wiseale cache list`\n")


def test_what_is_being_packed_is_left_alone(cache):
    entry = next(entry for entry in cache_entries(cache) if entry.kind == "interrupted pack")
    with exclusive_lock(cache / "packs" / "stopped.lock", wait=False):
        assert not remove_entry(entry)
    assert entry.path.exists()
    assert remove_entry(entry)
    assert not entry.path.exists()

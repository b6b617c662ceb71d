"""Packs of several files: the rows of one file, damage found when it is read, opened at once whatever their size."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from bench.large import opened_in_a_process
from bench.sparse_pack import write_sparse_pack
from tests.data.test_pack import edit, flip, in_chunks, stopping

from wiseale.data import load_dataset
from wiseale.data.cache import cache_entries
from wiseale.data.dataset import Rows
from wiseale.data.images.decode import Form
from wiseale.data.images.images import list_images
from wiseale.data.packs import block_checks, layout, reader
from wiseale.data.packs.image_pack import pack_images
from wiseale.data.packs.layout import Layout
from wiseale.data.packs.pack import open_pack, pack_chunks
from wiseale.errors import ConfigError, DataError
from wiseale.platform.mapped_files import ALIGNMENT, mapping_of
from wiseale.training import batches
from wiseale.training.batches import Batches

SHAPE = (3, 16, 16)  # 768 bytes: 256 rows are three times 65,536 bytes
SHARD_BYTES = 1 << 18
N = 1000  # four shards of 256 rows, the last one of 232


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch):
    monkeypatch.setattr(layout, "SHARD_BYTES", SHARD_BYTES)


def rows(n=N, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, *SHAPE), np.uint8)


def pack(path, x=None, **options):
    x = rows() if x is None else x
    return pack_chunks(path, len(x), x.shape[1:], in_chunks(x, 70), {"label": np.arange(len(x)) % 7}, **options)


def copied(source, target):
    """A copy, whose files have not been verified."""
    shutil.copytree(source, target)
    return target


@pytest.mark.parametrize("shape", [(3, 64, 64), (1, 28, 28), (3, 33, 33), (3, 255, 255), (1, 1, 1), (3, 1200, 1200)])
@pytest.mark.parametrize("n", [2, 7, 10**5, 10**7])
def test_layout(n, shape, monkeypatch):
    monkeypatch.setattr(layout, "SHARD_BYTES", 1 << 32)
    found = Layout.of(n, shape)
    files = found.files()
    assert [file.start for file in files] + [n] == [0] + [file.stop for file in files]
    if found.shard_rows is None:
        assert [file.name for file in files] == ["x.npy"]
        return
    assert all(file.bytes % ALIGNMENT == 0 for file in files[:-1])
    assert found.shard_rows % found.block_rows == 0
    for row in {0, found.shard_rows - 1, found.shard_rows % n, n - 1}:
        file = files[row // found.shard_rows]
        assert found.place(row) == (file.name, (row - file.start) * found.row_bytes)


def test_files_are_what_other_programs_read(tmp_path):
    x = rows()
    made = pack(tmp_path / "set", source="s", details={"origin": "here"})
    shards = sorted((tmp_path / "set" / "shards").glob("*.u8"))
    assert [path.name for path in shards] == [f"0000{i}.u8" for i in range(4)]
    np.testing.assert_array_equal(np.concatenate([np.fromfile(path, np.uint8) for path in shards]), x.ravel())
    np.testing.assert_array_equal(np.load(tmp_path / "set" / "factors" / "0.npy"), np.arange(N) % 7)
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert (manifest["version"], manifest["count"], manifest["shape"]) == (2, N, [N, *SHAPE])
    assert [shard["rows"] for shard in manifest["shards"]] == [256, 256, 256, 232]
    for path, shard in zip(shards, manifest["shards"], strict=True):
        assert shard["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sorted(os.listdir(tmp_path / "set")) == ["factors", "manifest.json", "shards"]

    np.testing.assert_array_equal(made.x, x)
    assert made.x.flags.c_contiguous
    assert not made.x.flags.writeable
    assert made.metadata.details == {"origin": "here"}
    np.testing.assert_array_equal(made.factors["label"], np.arange(N) % 7)
    assert isinstance(mapping_of(made.x[3:][::2]), block_checks.CheckedMapping)


def test_the_fingerprint_is_that_of_the_content(tmp_path):
    one, same = pack(tmp_path / "one"), pack(tmp_path / "same")
    other = pack(tmp_path / "other", np.where(np.arange(N)[:, None, None, None] == 999, 0, rows()).astype(np.uint8))
    assert one.metadata.sha256 == same.metadata.sha256 != other.metadata.sha256


def test_a_set_of_one_shard_stays_one_file(tmp_path):
    x = rows(SHARD_BYTES // 768)
    made = pack(tmp_path / "set", x)
    assert sorted(os.listdir(tmp_path / "set")) == ["factors.npz", "manifest.json", "x.npy"]
    assert made.metadata.sha256 == hashlib.sha256((tmp_path / "set" / "x.npy").read_bytes()).hexdigest()


def test_large_packs_of_earlier_versions_open_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "SHARD_BYTES", 1 << 32)
    before = pack(tmp_path / "set", source="s")
    monkeypatch.undo()
    monkeypatch.setattr(layout, "SHARD_BYTES", SHARD_BYTES)
    status = (tmp_path / "set" / "x.npy").stat()
    stamp = {"size": status.st_size, "modified_ns": status.st_mtime_ns, "changed_ns": status.st_ctime_ns}
    stamp |= {"inode": status.st_ino, "sha256": before.metadata.sha256}
    (tmp_path / "set.verified").write_text(json.dumps(stamp))  # as earlier versions wrote it
    monkeypatch.setattr(reader, "sha256", lambda path, of=reader.sha256: path.name != "x.npy" and of(path))
    after = pack_chunks(tmp_path / "set", N, SHAPE, stopping(rows(), 1), {}, source="s")
    assert after.metadata == before.metadata


def test_stopped_work_is_resumed_in_another_shard(tmp_path):
    x, starts = rows(), []
    with pytest.raises(KeyboardInterrupt):
        pack_chunks(tmp_path / "set", N, SHAPE, lambda start: stopping(x, 700), {}, source="s")
    flip(tmp_path / "set.partial" / "shards" / "00001.u8", 40 * 768)
    made = pack_chunks(
        tmp_path / "set", N, SHAPE, lambda start: starts.append(start) or in_chunks(x[start:]), {}, source="s"
    )
    assert starts == [256 + 32]  # the first block that is missing or damaged
    np.testing.assert_array_equal(made.x, x)
    whole = pack_chunks(tmp_path / "whole", N, SHAPE, in_chunks(x), {}, source="s")
    assert made.metadata == whole.metadata


def test_images_are_decoded_into_shards_and_bad_ones_left_out(tmp_path):
    from PIL import Image

    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(400):
        Image.new("RGB", (16, 16), (number % 256, number // 256, 9)).save(folder / f"{number:03d}.png")
    for number in (0, 150, 399):
        (folder / f"{number:03d}.png").write_bytes(b"not an image")
    form = Form(16, None, 3)
    made = pack_images(tmp_path / "set", list_images(folder), form, dict, source="s", skip_bad=True, processes=2)
    good = [number for number in range(400) if number not in (0, 150, 399)]
    np.testing.assert_array_equal(made.x[:, 0, 0, 0], np.array(good) % 256)
    np.testing.assert_array_equal(made.x[:, 1, 5, 5], np.array(good) // 256)
    assert len(os.listdir(tmp_path / "set" / "shards")) == 2 * 2
    assert open_pack(tmp_path / "set", check=True).metadata == made.metadata


def test_rows_left_out_can_empty_the_last_shard(tmp_path):
    from wiseale.data.packs.writer import PackWriter

    x = rows(514)
    with PackWriter(tmp_path / "set", 514, SHAPE, "s") as writer:
        for block in writer.missing():
            writer.write(block, x[writer.rows(block).start : writer.rows(block).stop])
        made = writer.finish({}, {}, drop=[3, 100, 513])
    np.testing.assert_array_equal(made.x, np.delete(x, [3, 100, 513], 0))
    names = ["00000.crc32", "00000.u8", "00001.crc32", "00001.u8"]
    assert [path.name for path in sorted((tmp_path / "set" / "shards").iterdir())] == names


READERS = {
    "take": lambda x, row: Rows(x).take(np.array([0, row])),
    "slice": lambda x, row: Rows(x).read(slice(row - 2, row + 2)),
    "of a part": lambda x, row: Rows(x[row - 5 :][::5]).take(np.array([1])),
    "batch": lambda x, row: Batches(Rows(x, "unit")).read(torch.tensor([0, row])),
    "bytes": lambda x, row: Batches(Rows(x, "unit")).gather(torch.tensor([row])),
}


@pytest.mark.parametrize("read", READERS)
def test_a_damaged_block_is_found_when_it_is_first_read(tmp_path, monkeypatch, read):
    monkeypatch.setattr(batches, "_IN_MEMORY_BYTES", 0)
    pack(tmp_path / "set")
    damaged = copied(tmp_path / "set", tmp_path / "copy")
    flip(damaged / "shards" / "00002.u8", 100 * 768 + 5)
    x = open_pack(damaged).x
    READERS[read](x, 512 + 64)  # the block before
    READERS[read](x, 512 + 133)  # the block after
    with pytest.raises(DataError) as caught:
        READERS[read](x, 512 + 100)
    assert str(caught.value) == (
        f"{damaged}/shards/00002.u8 is damaged (the checksum of its rows 608 to 639 of the set does not match): "
        f"delete {damaged} and pack again"
    )
    with pytest.raises(DataError, match=r"00002.u8 is damaged \(its checksum does not match\)"):
        open_pack(damaged, check=True)


DAMAGE = {
    "cut": (lambda p: os.truncate(p / "shards" / "00001.u8", 9), "00001.u8 is damaged (9 bytes where 196,608 belong)"),
    "gone": (lambda p: (p / "shards" / "00003.u8").unlink(), "shards/00003.u8 is damaged (No such file"),
    "shape": (lambda p: edit(p, shape=[N - 1, *SHAPE]), "its shards disagree"),
    "rows": (lambda p: edit(p, shard_rows=128), "its shards disagree"),
    "blocks": (lambda p: edit(p, block_rows=0), "its shards disagree"),
    "no shards": (lambda p: edit(p, shards=[]), "its shards disagree"),
    "digest": (lambda p: edit(p, sha256="0" * 64), "its shards disagree"),
    "words": (lambda p: edit(p, shards="many"), "manifest.json is damaged (incomplete)"),
    "factor": (lambda p: flip(p / "factors" / "0.npy", 200), "factors/0.npy is damaged (its checksum"),
    "no factor": (lambda p: (p / "factors" / "0.npy").unlink(), "factors/0.npy is damaged (No such file"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_other_damage_is_one_line_at_opening(tmp_path, kind):
    pack(tmp_path / "set")
    damage, message = DAMAGE[kind]
    damage(tmp_path / "set")
    with pytest.raises(DataError) as caught:
        open_pack(tmp_path / "set")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    np.testing.assert_array_equal(pack(tmp_path / "set").x, rows())


@pytest.mark.parametrize("how", ["flipped", "gone"])
def test_damaged_checksums_are_one_line(tmp_path, how):
    pack(tmp_path / "set")
    damaged = copied(tmp_path / "set", tmp_path / "copy")
    sums = damaged / "shards" / "00002.crc32"
    flip(sums, 3) if how == "flipped" else sums.unlink()
    x = open_pack(damaged).x
    with pytest.raises(DataError, match=r"00002.crc32 is damaged"):
        Rows(x).take(np.array([600]))


def counted(monkeypatch):
    read = []

    def crc32(content, of=block_checks.zlib.crc32):
        read.append(len(content))
        return of(content)

    monkeypatch.setattr(block_checks.zlib, "crc32", crc32)
    return read


def test_blocks_are_verified_once_and_not_again_by_later_processes(tmp_path, monkeypatch):
    pack(tmp_path / "set")
    copied(tmp_path / "set", tmp_path / "copy")
    checked = counted(monkeypatch)
    Rows(open_pack(tmp_path / "set").x).take(np.arange(N))
    assert checked == []  # verified when it was written
    found = open_pack(tmp_path / "copy")
    for start in (0, 10, 700, 0, 0):
        Rows(found.x).take(np.arange(start, start + 300))
    assert sum(checked) == sum(len(range(a, b)) for a, b in ((0, 320), (672, 1000))) * 768
    np.testing.assert_array_equal(Rows(found.x).take(np.arange(N)).x, rows())
    assert sum(checked) == N * 768
    assert mapping_of(found.x).checks is None
    Rows(open_pack(tmp_path / "copy").x).take(np.arange(N))
    assert sum(checked) == N * 768
    os.utime(tmp_path / "copy" / "shards" / "00001.u8")
    Rows(open_pack(tmp_path / "copy").x).take(np.arange(N))
    assert sum(checked) == (N + 256) * 768


def test_a_pack_in_a_read_only_place_is_checked_each_time(tmp_path, monkeypatch):
    from wiseale.data.packs import stamps

    pack(tmp_path / "set")
    (tmp_path / "set.verified").unlink()

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(stamps, "write_text", refuse)
    np.testing.assert_array_equal(Rows(open_pack(tmp_path / "set").x).take(np.arange(N)).x, rows())


def test_batches_are_those_of_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "_IN_MEMORY_BYTES", 0)
    made = pack(tmp_path / "set")
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    assert torch.equal(Batches(Rows(made.x, "unit")).read(order), Batches(Rows(rows(), "unit")).read(order))


def test_a_pack_is_a_dataset_by_its_folder(tmp_path):
    pack(tmp_path / "set")
    dataset = load_dataset(str(tmp_path / "set"))
    assert dataset.fingerprint == open_pack(tmp_path / "set").metadata.sha256
    assert (len(dataset.train), dataset.x_shape, dataset.train.reading) == (N, SHAPE, "unit")
    assert dataset.name == str(tmp_path / "set")
    with pytest.raises(ConfigError, match="takes no settings: leave out size"):
        load_dataset(f"{tmp_path / 'set'}:size=8")


def test_the_cache_knows_it(tmp_path):
    pack(tmp_path / "packs" / "set")
    with pytest.raises(KeyboardInterrupt):
        pack_chunks(tmp_path / "packs" / "new", N, SHAPE, lambda start: stopping(rows(), 700), {})
    kinds = {entry.name: entry.kind for entry in cache_entries(tmp_path)}
    assert kinds == {"packs/set": "pack", "packs/new.partial": "interrupted pack"}


def test_systems_that_cannot_map_files_side_by_side(tmp_path, monkeypatch):
    pack(tmp_path / "set")
    for module in (reader, layout):
        monkeypatch.setattr(module, "can_join", lambda: False)
    with pytest.raises(DataError, match="packed in several files, which this system cannot map as one"):
        open_pack(tmp_path / "set")
    np.testing.assert_array_equal(pack(tmp_path / "set").x, rows())
    assert (tmp_path / "set" / "x.npy").exists()


def test_too_many_files_are_one_line(tmp_path, monkeypatch):
    """The system limits how many files one process maps."""
    pack(tmp_path / "set")

    def refuse(paths, sizes, kind):
        raise OSError(12, "Cannot allocate memory", str(paths[2]))

    monkeypatch.setattr(reader, "join_files", refuse)
    with pytest.raises(DataError, match=r"00002.u8 is damaged \(Cannot allocate memory\)"):
        open_pack(tmp_path / "set")


def test_memory_is_returned(tmp_path):
    pack(tmp_path / "set")
    for _ in range(3):
        assert open_pack(tmp_path / "set").x[::100].any()
    maps = Path("/proc/self/maps")
    assert not maps.exists() or str(tmp_path) not in maps.read_text()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.long
def test_a_billion_rows_open_at_once(tmp_path, monkeypatch):
    """12.3 TB in 2,862 shards, never verified before, against a set of 6 million rows in 18 shards.

    167 times the rows may take 10 times the processor time to open and 4 times until the first batch, which is mostly
    imports. Ratios, because processor seconds depend on the machine and on what else runs there.
    """
    monkeypatch.setattr(layout, "SHARD_BYTES", 1 << 32)
    write_sparse_pack(tmp_path / "small", 6 * 10**6, (3, 64, 64))
    write_sparse_pack(tmp_path / "set", 10**9, (3, 64, 64))
    small = opened_in_a_process(tmp_path / "small")
    found = opened_in_a_process(tmp_path / "set")
    assert found.rows == 10**9
    assert found.held_out == small.held_out == 50_000
    assert found.opened.peak_bytes < 500e6
    assert found.opened.processor_seconds < 10 * small.opened.processor_seconds
    assert found.first_batch.processor_seconds < 4 * small.first_batch.processor_seconds

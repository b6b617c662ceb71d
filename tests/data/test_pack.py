from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wiseale.data import load_dataset
from wiseale.data.images import pack as packs
from wiseale.data.images.pack import open_pack
from wiseale.data.images.pack_writer import PackWriter, pack_chunks
from wiseale.errors import ConfigError, DataError
from wiseale.platform.json_files import sealed, unseal

SHAPE = (3, 8, 8)
N = 150  # five blocks, the last one short


def rows(n: int = N, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, *SHAPE), np.uint8)


def in_chunks(x: np.ndarray, length: int = 7, starts: list[int] | None = None):
    """The rows from any row on, chunk by chunk; ``starts`` collects the rows that were asked for."""

    def chunks(row):
        if starts is not None:
            starts.append(row)
        return (x[start : start + length] for start in range(row, len(x), length))

    return chunks


def stopping(x: np.ndarray, after: int, length: int = 32):
    """The rows before ``after``, then an interrupt."""

    def chunks(row):
        yield from in_chunks(x[:after], length)(row)
        raise KeyboardInterrupt

    return chunks


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(0, 90), min_size=1, max_size=8))
def test_chunks_of_any_length_come_back_in_order(lengths):
    x = rows(sum(lengths) + 1)
    ends = np.cumsum([*lengths, 1])
    with tempfile.TemporaryDirectory() as folder:
        chunks = [x[end - length : end] for end, length in zip(ends, [*lengths, 1], strict=True)]
        pack = pack_chunks(Path(folder) / "set", len(x), SHAPE, lambda row: chunks, {})
        np.testing.assert_array_equal(pack.x, x)


def test_files_are_what_other_programs_read(tmp_path):
    x = rows()
    factors = {"file": np.arange(N), "angle": np.linspace(0, 1, N), "label": np.array(["a", "bcd", "é"] * 50)}
    pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(x), factors, source="s")
    np.testing.assert_array_equal(np.load(tmp_path / "set" / "x.npy"), x)
    with np.load(tmp_path / "set" / "factors.npz") as stored:
        assert set(stored.files) == set(factors)
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert manifest["images_sha256"] == hashlib.sha256((tmp_path / "set" / "x.npy").read_bytes()).hexdigest()
    assert manifest["shape"] == [N, *SHAPE]
    assert sorted(os.listdir(tmp_path / "set")) == ["factors.npz", "manifest.json", "x.npy"]

    pack = open_pack(tmp_path / "set", check=True)
    assert isinstance(pack.x, np.memmap)
    assert not pack.x.flags.writeable
    for name, values in factors.items():
        np.testing.assert_array_equal(pack.factors[name], values)
    picked = np.array([149, 0, 33])
    np.testing.assert_array_equal(pack.x[picked], x[picked])


def test_a_finished_pack_is_only_opened(tmp_path):
    pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {}, source="one")
    again = pack_chunks(tmp_path / "set", N, SHAPE, stopping(rows(), 1), {}, source="one")
    np.testing.assert_array_equal(again.x, rows())


def test_another_source_replaces_it(tmp_path):
    before = pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {}, source="one")
    after = pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows(seed=1)), {}, source="two")
    np.testing.assert_array_equal(after.x, rows(seed=1))
    np.testing.assert_array_equal(before.x, rows())  # who has it open keeps what was there
    assert sorted(os.listdir(tmp_path)) == ["set", "set.lock", "set.verified"]


def test_stopped_work_leaves_the_old_pack_and_is_resumed(tmp_path):
    path, new = tmp_path / "set", rows(seed=1)
    pack_chunks(path, N, SHAPE, in_chunks(rows()), {}, source="old")
    with pytest.raises(KeyboardInterrupt):
        pack_chunks(path, N, SHAPE, stopping(new, 100), {}, source="new")
    np.testing.assert_array_equal(open_pack(path, check=True).x, rows())

    starts, steps = [], []
    pack = pack_chunks(
        path,
        N,
        SHAPE,
        in_chunks(new, 32, starts),
        {},
        source="new",
        progress=lambda done, total: steps.append((done, total)),
    )
    whole = pack_chunks(tmp_path / "whole", N, SHAPE, in_chunks(new), {}, source="new")
    assert starts == [100]
    assert steps == [(100, N), (132, N), (N, N)]
    assert pack.metadata == whole.metadata
    assert {name: (path / name).read_bytes() for name in os.listdir(path)} == {
        name: (tmp_path / "whole" / name).read_bytes() for name in os.listdir(path)
    }


@pytest.mark.parametrize("place", [0, 40])
def test_half_written_rows_are_made_again(tmp_path, place):
    x = rows()
    with pytest.raises(KeyboardInterrupt):
        pack_chunks(tmp_path / "set", N, SHAPE, stopping(x, 100), {})
    images = tmp_path / "set.partial" / "x.npy"
    content = bytearray(images.read_bytes())
    content[128 + place * 192] ^= 1
    images.write_bytes(content)
    starts = []
    pack = pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(x, starts=starts), {})
    assert starts == [place // 32 * 32]
    np.testing.assert_array_equal(pack.x, x)


@pytest.mark.parametrize(
    "tail",
    [
        '{"start": 3, "crc": 12',
        '{"start": "x"}\n',
        '{"start": 0, "stop": 999, "crc": 0, "bad": []}\n',
        '{"start": -5, "stop": 3, "crc": 0, "bad": []}\n',
        "nonsense\n",
    ],
)
def test_a_torn_or_damaged_journal_is_survived(tmp_path, tail):
    x = rows()
    with pytest.raises(KeyboardInterrupt):
        pack_chunks(tmp_path / "set", N, SHAPE, stopping(x, 100), {})
    with (tmp_path / "set.partial" / "journal.jsonl").open("a") as journal:
        journal.write(tail)
    for after in (140, None):  # stopped once more, then finished: what follows the torn line must be readable too
        try:
            pack = pack_chunks(tmp_path / "set", N, SHAPE, stopping(x, after) if after else in_chunks(x), {})
        except KeyboardInterrupt:
            continue
    np.testing.assert_array_equal(pack.x, x)


def test_an_attempt_that_cannot_be_resumed_is_made_anew(tmp_path):
    """Its blocks are read before the journal's damage is met: the files that were open then are not written to."""
    x = rows()
    with pytest.raises(KeyboardInterrupt):
        pack_chunks(tmp_path / "set", N, SHAPE, stopping(x, 100), {})
    with (tmp_path / "set.partial" / "journal.jsonl").open("a") as journal:
        journal.write("nonsense\n")
    np.testing.assert_array_equal(pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(x), {}).x, x)


def test_only_one_of_two_does_the_work(tmp_path):
    x, begun, packs = rows(), [], []

    def slow(start):
        begun.append(start)
        for chunk in in_chunks(x, 50)(start):
            time.sleep(0.05)
            yield chunk

    threads = [
        threading.Thread(target=lambda: packs.append(pack_chunks(tmp_path / "set", N, SHAPE, slow, {})))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun == [0]
    for pack in packs:
        np.testing.assert_array_equal(pack.x, x)


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


DAMAGE = {
    "gone": (lambda p: shutil.rmtree(p), "not a packed set"),
    "no manifest": (lambda p: (p / "manifest.json").unlink(), "not a packed set"),
    "empty manifest": (lambda p: (p / "manifest.json").write_text(""), "manifest.json is damaged"),
    "list": (lambda p: (p / "manifest.json").write_text("[]"), "manifest.json is damaged"),
    "bytes": (lambda p: (p / "manifest.json").write_bytes(b"\xff\xfe"), "manifest.json is damaged"),
    "incomplete": (lambda p: (p / "manifest.json").write_text('{"version": 1}'), "manifest.json is damaged"),
    "version": (lambda p: edit(p, version=3), "packed format 3"),
    "shape": (lambda p: edit(p, shape=[N, 3, 8, -8]), "impossible shape"),
    "edited": (lambda p: edit(p, seal=False, source="mine"), "manifest.json is damaged"),
    "unknown key": (lambda p: edit(p, dtype="<f4"), "manifest.json is damaged"),
    "other count": (lambda p: edit(p, shape=[N + 1, *SHAPE]), "x.npy is damaged"),
    "same size": (lambda p: edit(p, shape=[N, 3, 4, 16]), "its header disagrees"),
    "cut": (lambda p: os.truncate(p / "x.npy", 5000), "x.npy is damaged (5,000 bytes where 28,928 belong)"),
    "no images": (lambda p: (p / "x.npy").unlink(), "x.npy is damaged"),
    "bit": (lambda p: flip(p / "x.npy", 9000), "its checksum does not match"),
    "factors": (lambda p: flip(p / "factors.npz", 60), "factors.npz is damaged"),
    "other factors": (lambda p: np.savez(p / "factors.npz", a=np.arange(N)[::-1]), "factors.npz is damaged"),
    "no factors": (lambda p: (p / "factors.npz").unlink(), "factors.npz is damaged"),
}


def edit(path: Path, seal: bool = True, **values) -> None:
    manifest = unseal(json.loads((path / "manifest.json").read_text()))
    text = sealed(manifest | values)
    (path / "manifest.json").write_text(text if seal else text.replace(json.loads(text)["sha256"], "0" * 64))


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_line(tmp_path, kind):
    pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {"a": np.arange(N)})
    damage, message = DAMAGE[kind]
    damage(tmp_path / "set")
    with pytest.raises(DataError) as caught:
        open_pack(tmp_path / "set", check=True)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_pack_is_made_again(tmp_path):
    pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {})
    os.truncate(tmp_path / "set" / "x.npy", 5000)
    np.testing.assert_array_equal(pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {}).x, rows())


def test_a_folder_that_is_no_pack_is_never_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(DataError, match="not a packed set: "):
        pack_chunks(tmp_path / "mine", N, SHAPE, in_chunks(rows()), {})
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    ("n", "chunk", "message"),
    [
        (N - 1, rows(), "more than the 149 rows"),
        (N + 1, rows(), "150 rows were written, 151"),
        (N, rows().astype(np.float32), "uint8"),
        (N, rows()[:, :1], "rows of"),
    ],
)
def test_chunks_that_do_not_fit_are_a_fault_of_the_caller(tmp_path, n, chunk, message):
    with pytest.raises(ValueError, match=message):
        pack_chunks(tmp_path / "set", n, SHAPE, lambda row: [chunk], {})
    assert not (tmp_path / "set").exists()


def test_factors_need_one_value_for_each_row(tmp_path):
    with pytest.raises(ValueError, match="one value for each"):
        pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {"a": np.arange(N - 1)})
    with pytest.raises(ValueError, match="Object arrays"):  # never a pickle
        pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {"a": np.array([{}] * N)})
    assert not (tmp_path / "set").exists()


def test_too_little_room_is_said_before_the_work(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
    with pytest.raises(DataError, match=r"1\.1 MB.*0\.0 MB") as caught:
        pack_chunks(tmp_path / "set", N, SHAPE, stopping(rows(), 1), {})
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["set.lock"]


FULL_DISK = """
import os, shutil, sys
from pathlib import Path
import numpy as np
from wiseale.data.images.pack import open_pack
from wiseale.data.images.pack_writer import pack_chunks
from wiseale.errors import DataError

disk, reserve = Path(sys.argv[1]), sys.argv[2] == "reserve"
x = np.random.default_rng(0).integers(0, 256, (1600, 3, 16, 16), np.uint8)  # 1.2 MB of 4
pack_chunks(disk / "set", 160, (3, 16, 16), lambda row: [x[:160]], {}, source="old")
if not reserve:
    del os.posix_fallocate

def filling(start):
    for at in range(start, 1600, 100):
        yield x[at : at + 100]
        if not (disk / "filler").exists():
            with open(disk / "filler", "wb", buffering=0) as file:
                while True:
                    try:
                        file.write(bytes(65536))
                    except OSError:
                        break

try:
    pack_chunks(disk / "set", 1600, (3, 16, 16), filling, {"a": np.arange(1600)}, source="new")
    print("no error")
except DataError as error:
    print(str(error))
print(np.array_equal(open_pack(disk / "set", check=True).x, x[:160]))
(disk / "filler").write_bytes(b"")
starts = []
pack = pack_chunks(disk / "set", 1600, (3, 16, 16), lambda start: starts.append(start) or [x[start:]], {}, source="new")
print(np.array_equal(pack.x, x), starts)
"""


@pytest.mark.parametrize("how", ["reserve", "sparse"])
def test_a_disk_that_fills_up_leaves_the_old_pack_and_is_resumed(tmp_path, how):
    tests = ["unshare", "-rm", "sh", "-c"]
    mount = 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"'
    if not shutil.which("unshare") or subprocess.run([*tests, mount, tmp_path, "true"], capture_output=True).returncode:
        pytest.skip("needs to mount a small tmpfs, which is not allowed here")
    run = subprocess.run(
        [*tests, mount, str(tmp_path), sys.executable, "-c", FULL_DISK, str(tmp_path), how],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert not run.stderr
    error, intact, finished = run.stdout.splitlines()
    assert error.startswith("no room for ")
    assert intact == "True"
    # with the room reserved all rows were written before the disk was full; without, only some
    assert finished == ("True []" if how == "reserve" else "True [100]")


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write .*file"):
        pack_chunks(tmp_path / "file" / "set", N, SHAPE, in_chunks(rows()), {})


def pixels(path):
    return path / "x.npy"


def test_pixels_are_checked_when_the_file_was_touched_and_only_then(tmp_path, monkeypatch):
    """A flipped bit was trained on: opening looked at the size and the header alone."""
    pack_chunks(tmp_path / "set", 20, (1, 4, 4), in_chunks(np.full((20, 1, 4, 4), 7, np.uint8)), {})
    hashed = []

    def counted(path, of=packs.sha256):
        hashed.append(path.name)
        return of(path)

    monkeypatch.setattr(packs, "sha256", counted)
    open_pack(tmp_path / "set")
    assert hashed == ["factors.npz"]  # checked when it was written
    os.utime(pixels(tmp_path / "set"))
    open_pack(tmp_path / "set")
    open_pack(tmp_path / "set")
    assert hashed.count("x.npy") == 1
    moved = tmp_path / "copy"
    shutil.copytree(tmp_path / "set", moved)
    open_pack(moved)
    assert hashed.count("x.npy") == 2


@pytest.mark.parametrize("keep_times", [False, True])
@pytest.mark.parametrize("place", [128, 200, -1])
def test_a_flipped_bit_in_the_pixels_is_noticed(tmp_path, place, keep_times):
    pack_chunks(tmp_path / "set", 20, (1, 4, 4), in_chunks(np.full((20, 1, 4, 4), 7, np.uint8)), {}, source="a")
    path = pixels(tmp_path / "set")
    before, data = path.stat(), bytearray(path.read_bytes())
    data[place] ^= 16
    path.write_bytes(data)
    if keep_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(DataError, match=r"x.npy is damaged \(its checksum does not match\)"):
        open_pack(tmp_path / "set")
    again = pack_chunks(tmp_path / "set", 20, (1, 4, 4), in_chunks(np.full((20, 1, 4, 4), 7, np.uint8)), {}, source="a")
    assert (again.x == 7).all()


def test_a_pack_in_a_read_only_place_is_checked_each_time(tmp_path, monkeypatch):
    pack_chunks(tmp_path / "set", 20, (1, 4, 4), in_chunks(np.full((20, 1, 4, 4), 7, np.uint8)), {})
    (tmp_path / "set.verified").write_text("damaged")

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(packs, "write_text", refuse)
    assert (open_pack(tmp_path / "set").x == 7).all()


def test_factors_of_another_length_are_refused(tmp_path):
    """As a stranger could write them, with all checksums right."""
    pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {"a": np.arange(N)})
    np.savez(tmp_path / "set" / "factors.npz", a=np.arange(N - 1))
    edit(tmp_path / "set", factors_sha256=hashlib.sha256((tmp_path / "set" / "factors.npz").read_bytes()).hexdigest())
    with pytest.raises(DataError, match=r"factors.npz is damaged"):
        open_pack(tmp_path / "set")


def test_details_keep_names_that_are_not_utf_8(tmp_path):
    """A file name on Linux may be any bytes: skipped images are recorded by name."""
    details = {"skipped": [[os.fsdecode(b"caf\xe9.png"), "not an image"], ["été 🫖.png", "cut short"]]}
    with PackWriter(tmp_path / "set", N, SHAPE, "s") as writer:
        writer.write(0, rows())
        writer.finish({}, details)
    assert open_pack(tmp_path / "set").metadata.details == details


def test_rows_are_left_out_at_the_end(tmp_path):
    x = rows()
    with PackWriter(tmp_path / "set", N, SHAPE, "s") as writer:
        writer.write(0, x[:100])
        writer.write(100, x[100:])
        pack = writer.finish({"a": np.arange(N - 3)}, {}, drop=[3, 100, N - 1])
    np.testing.assert_array_equal(pack.x, np.delete(x, [3, 100, N - 1], 0))
    np.testing.assert_array_equal(np.load(tmp_path / "set" / "x.npy"), pack.x)


def test_a_pack_is_a_dataset_by_its_folder(tmp_path):
    pack_chunks(tmp_path / "set", N, SHAPE, in_chunks(rows()), {"a": np.arange(N)})
    dataset = load_dataset(str(tmp_path / "set"))
    assert dataset.fingerprint == hashlib.sha256((tmp_path / "set" / "x.npy").read_bytes()).hexdigest()
    assert (len(dataset.train), dataset.x_shape, dataset.train.reading) == (N, SHAPE, "unit")
    assert dataset.name == str(tmp_path / "set")
    with pytest.raises(ConfigError, match="leave out size"):
        load_dataset(f"{tmp_path / 'set'}:size=8")

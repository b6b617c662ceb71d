from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bench.packing import repeated, watched
from PIL import Image
from tests.data.image_samples import folder_of, photograph, png_claiming, spoil

from wiseale.data.images.decode import Form
from wiseale.data.images.folder import pack_images
from wiseale.data.images.listing import list_images
from wiseale.data.images.pack import Pack
from wiseale.errors import DataError

FORM = Form(size=16, crop=None, channels=3)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def packed(folder: Path, target: Path, **options) -> Pack:
    listing = list_images(folder)
    form = options.pop("form", FORM)
    return pack_images(target, listing, form, options.pop("factors", dict), source=listing.fingerprint(), **options)


def files(path: Path) -> dict[str, bytes]:
    return {name: (path / name).read_bytes() for name in os.listdir(path)}


def test_rows_are_the_images_in_order_whatever_the_number_of_processes(tmp_path):
    folder = folder_of(tmp_path / "images", 70, width=64, height=64)
    packs = {count: packed(folder, tmp_path / f"{count}", processes=count, form=Form(64, None, 3)) for count in (1, 3)}
    for index, row in enumerate(packs[3].x):
        np.testing.assert_array_equal(row.transpose(1, 2, 0), photograph(index, 64, 64))
    assert files(tmp_path / "1") == files(tmp_path / "3")


def test_a_zip_gives_the_same_rows_as_its_folder(tmp_path):
    folder = folder_of(tmp_path / "images", 40, ".jpg")
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / f"{method}.zip", "w", method) as archive:
            for path in folder.iterdir():
                archive.write(path, f"deep/er/{path.name}")
        pack = packed(tmp_path / f"{method}.zip", tmp_path / f"from-{method}")
        np.testing.assert_array_equal(pack.x, packed(folder, tmp_path / "pack").x)


def test_a_second_time_nothing_is_decoded(tmp_path):
    folder = folder_of(tmp_path / "images", 5)
    first = np.array(packed(folder, tmp_path / "pack").x)
    for path in folder.iterdir():
        spoil(path)
    np.testing.assert_array_equal(packed(folder, tmp_path / "pack").x, first)


def test_progress_is_told_from_nothing_to_all(tmp_path):
    told = []
    packed(folder_of(tmp_path / "images", 70), tmp_path / "pack", progress=lambda *step: told.append(step))
    assert told[0] == (0, 70)
    assert told[-1] == (70, 70)
    assert told == sorted(told)


@pytest.fixture
def mixed(tmp_path):
    """Forty good images among which seven cannot be used, and some that only look unusual."""
    folder = folder_of(tmp_path / "images", 40)
    Image.fromarray(photograph(0)[..., 0]).save(folder / "010.png")
    Image.fromarray(photograph(0)).convert("CMYK").save(folder / "011.jpg")
    Image.fromarray(photograph(0)[..., 0].astype(np.uint16) * 257).save(folder / "012.png")
    jpeg = folder / "whole.jpg"
    Image.fromarray(photograph(0)).save(jpeg)
    (folder / "000a-cut.jpg").write_bytes(jpeg.read_bytes()[:-200])
    jpeg.unlink()
    (folder / "000b-empty.png").write_bytes(b"")
    (folder / "005a-bomb.png").write_bytes(png_claiming(50_000, 50_000))
    Image.new("RGB", (1, 1)).save(folder / "005b-tiny.png")
    (folder / "039a-text.jpg").write_bytes(b"hello")
    (folder / "039b-nowhere.jpg").symlink_to(folder / "gone.jpg")
    (folder / "039c-bomb.png").write_bytes(png_claiming(10_000, 8_000))
    return folder


def test_bad_images_are_named_and_counted_in_one_line(mixed, tmp_path):
    with pytest.raises(DataError) as caught:
        packed(mixed, tmp_path / "pack")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(
        f"7 of 48 images in {mixed} cannot be used: 000a-cut.jpg (cut short), 000b-empty.png (not"
    )
    assert "005a-bomb.png (claims more than 67,108,864 pixels), 005b-tiny.png (1×1, smaller than size 16)" in message
    assert message.endswith(" and 2 more: repair or remove them, or leave them out with skip_bad=true")
    assert not (tmp_path / "pack").exists()


def test_bad_images_are_left_out_on_demand_and_remembered(mixed, tmp_path):
    listing = list_images(mixed)
    order = {"order": np.arange(len(listing.entries))}
    with pytest.raises(DataError):
        packed(mixed, tmp_path / "pack")
    for path in mixed.iterdir():
        if path.exists():
            spoil(path)  # the first attempt has decoded them all: nothing is left to decode
    pack = packed(mixed, tmp_path / "pack", skip_bad=True, factors=lambda: order)
    kept = [listing.entries[row].name for row in pack.factors["order"]]
    assert kept == [entry.name for entry in listing.entries if "-" not in entry.name]
    assert [name for name, _ in pack.metadata.details["skipped"]] == [e.name for e in listing.entries if "-" in e.name]
    assert pack.x.shape == (41, 3, 16, 16)

    good = folder_of(tmp_path / "good", 40)
    expected = {
        entry.name: row for entry, row in zip(list_images(good).entries, packed(good, tmp_path / "g").x, strict=True)
    }
    unusual = {"010.png", "011.jpg", "012.png"}
    for row, name in zip(pack.x, kept, strict=True):
        if name not in unusual:
            np.testing.assert_array_equal(row, expected[name])

    with pytest.raises(DataError, match=r"^7 of 48 images"):  # without skip_bad the same pack is refused
        packed(mixed, tmp_path / "pack")


def test_a_folder_of_nothing_but_bad_images_is_refused_even_then(tmp_path):
    folder = folder_of(tmp_path / "images", 3, width=8, height=8)
    with pytest.raises(DataError, match=r"^3 of 3 images .*size 16.*size or crop"):
        packed(folder, tmp_path / "pack", skip_bad=True)


def test_damaged_members_of_a_zip_are_bad_images(tmp_path):
    folder = folder_of(tmp_path / "images", 3)
    path = tmp_path / "images.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for image in sorted(folder.iterdir()):
            archive.write(image, image.name)
    content = bytearray(path.read_bytes())
    content[content.index(b"001.png") + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"^1 of 3 images in .*images.zip .*: 001.png \(damaged in the zip\)"):
        packed(path, tmp_path / "pack")


PACK_AND_DIE = """
import os, signal, sys
from pathlib import Path
from wiseale.data.images.decode import Form
from wiseale.data.images.folder import pack_images
from wiseale.data.images.listing import list_images

folder, target, processes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
listing = list_images(folder)

def die(done, total):
    print(done, flush=True)
    if done > total // 2:
        print(Path(f"/proc/self/task/{os.getpid()}/children").read_text(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

pack_images(target, listing, Form(16, None, 3), dict, source=listing.fingerprint(), processes=processes, progress=die)
"""


@linux
@pytest.mark.parametrize("processes", [1, 2])
def test_a_killed_packing_is_continued_to_the_same_bytes(tmp_path, processes):
    folder = folder_of(tmp_path / "images", 200, ".jpg")
    packed(folder, tmp_path / "whole")
    killed = subprocess.run(
        [sys.executable, "-c", PACK_AND_DIE, folder, tmp_path / "pack", str(processes)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    *_, done, workers = killed.stdout.splitlines()
    done = int(done)
    assert len(workers.split()) == processes
    assert_gone(workers.split())
    assert not (tmp_path / "pack").exists()
    if processes == 1:  # then they were decoded in order, and those done are not needed any more
        for path in sorted(folder.iterdir())[:done]:
            spoil(path)
    told = []
    packed(folder, tmp_path / "pack", progress=lambda *step: told.append(step))
    assert told[0] == (done, 200)
    assert files(tmp_path / "pack") == files(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == [
        "images",
        *(f"{name}{end}" for name in ("pack", "whole") for end in ("", ".lock", ".verified")),
    ]


def assert_gone(processes: list[str]) -> None:
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{process}/exe").exists() for process in processes):  # of a dead one only the entry stays
        assert time.monotonic() < deadline, "workers outlive their parent"
        time.sleep(0.01)


def test_a_block_that_changed_since_is_decoded_again(tmp_path):
    folder = folder_of(tmp_path / "images", 100)

    def stop(done, total):
        if done >= 64:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        packed(folder, tmp_path / "pack", progress=stop, processes=1)
    images = tmp_path / "pack.partial" / "x.npy"
    content = bytearray(images.read_bytes())
    content[128 + 40 * 768 : 128 + 50 * 768] = bytes(10 * 768)
    images.write_bytes(content)
    told = []
    packed(folder, tmp_path / "pack", progress=lambda *step: told.append(step))
    assert told[0] == (32, 100)
    packed(folder, tmp_path / "whole")
    assert files(tmp_path / "pack") == files(tmp_path / "whole")


def children() -> list[str]:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()


@linux
def test_an_interrupt_ends_the_workers(tmp_path):
    before = children()

    def stop(done, total):
        if done:
            assert len(children()) > len(before)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        packed(folder_of(tmp_path / "images", 100), tmp_path / "pack", progress=stop)
    assert children() == before


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended with signal 11"),
        ("raise SystemExit(3)", "ended with exit code 3"),
        ("import json; input(), input(), print(json.dumps(dict(errno=28, problem='No space left')))", "^no room for"),
        (
            "import json; input(), input(), print(json.dumps(dict(errno=5, problem='Input/output error')))",
            "^cannot write",
        ),
    ],
)
def test_a_worker_that_dies_or_cannot_write_is_one_line(tmp_path, monkeypatch, program, message):
    (tmp_path / "program.py").write_text(program)
    monkeypatch.setattr("wiseale.data.images.decode.__file__", str(tmp_path / "program.py"))
    with pytest.raises(DataError, match=message) as caught:
        packed(folder_of(tmp_path / "images", 40), tmp_path / "pack")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "pack").exists()


def test_a_full_disk_stops_the_workers_with_one_line(tmp_path):
    mount = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"', str(tmp_path / "disk")]
    (tmp_path / "disk").mkdir()
    if not shutil.which("unshare") or subprocess.run([*mount, "true"], capture_output=True).returncode:
        pytest.skip("needs to mount a small tmpfs, which is not allowed here")
    folder = folder_of(tmp_path / "images", 100)
    program = (
        "import os, shutil, types; del os.posix_fallocate\n"  # as on a system that cannot reserve room
        "shutil.disk_usage = lambda path: types.SimpleNamespace(free=10**9)\n"
        + PACK_AND_DIE.replace("Form(16", "Form(64").replace("total // 2", "total")
    )
    run = subprocess.run(
        [*mount, sys.executable, "-c", program, folder, tmp_path / "disk" / "pack", "2"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].startswith("wiseale.errors.DataError: no room for ")


def test_memory_does_not_grow_with_the_set(tmp_path):
    listing = list_images(folder_of(tmp_path / "images", 60, ".jpg"))
    peaks = []
    for times in (10, 100):
        with watched() as peak:
            pack_images(tmp_path / f"{times}", repeated(listing, times), FORM, dict, source="s", processes=1)
        peaks.append(peak)
    assert min(peaks[0].values()) > 0
    assert peaks[1]["workers"] < peaks[0]["workers"] + 16e6
    assert peaks[1]["self"] < peaks[0]["self"] + 16e6

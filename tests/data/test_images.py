from __future__ import annotations

import os
import stat
import struct
import zipfile
from pathlib import Path

import pytest
from tests.data.image_samples import folder_of

from wiseale.data.images.listing import list_images
from wiseale.errors import DataError


def names(path: Path) -> list[str]:
    return [entry.name for entry in list_images(path).entries]


def zipped(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def test_a_folder_is_listed_in_order_without_clutter(tmp_path):
    for name in ["b.JPG", "a.png", "sub/deep/c.jpeg", ".hidden.png", "._b.jpg", "notes.txt", "__MACOSX/x.png"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    assert names(tmp_path) == ["a.png", "b.JPG", "sub/deep/c.jpeg"]


def test_links_are_followed_but_not_in_circles(tmp_path):
    elsewhere = folder_of(tmp_path / "elsewhere", 2)
    images = folder_of(tmp_path / "images", 1)
    (images / "more").symlink_to(elsewhere)
    (images / "self").symlink_to(images)
    (images / "nowhere.png").symlink_to(tmp_path / "gone.png")
    os.mkfifo(images / "pipe.png")  # opening it would wait for ever
    assert names(images) == ["000.png", "more/000.png", "more/001.png", "nowhere.png"]


def test_the_fingerprint_follows_names_sizes_times_and_settings(tmp_path):
    folder = folder_of(tmp_path / "images", 3)
    first = list_images(folder).fingerprint(64)
    assert list_images(folder).fingerprint(64) == first
    assert list_images(folder).fingerprint(32) != first
    os.utime(folder / "001.png", ns=(1, 1))
    touched = list_images(folder).fingerprint(64)
    (folder / "002.png").rename(folder / "003.png")
    assert len({first, touched, list_images(folder).fingerprint(64)}) == 3


@pytest.mark.parametrize(
    ("files", "labels"),
    [
        (["cat/1.png", "dog/1.png", "cat/2.png"], ["cat", "cat", "dog"]),
        (["all/cat/1.png", "all/dog/1.png"], ["cat", "dog"]),
        (["all/cat/1.png", "all/cat/2.png"], None),
        (["1.png", "2.png"], None),
        (["1.png", "cat/2.png"], ["", "cat"]),
        (["car/1.png", "cat/2.png"], ["car", "cat"]),
        (["cat/a/1.png", "cat/b/2.png", "dog/3.png"], ["cat", "cat", "dog"]),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_sub_folders_are_labels(tmp_path, files, labels, kind):
    root = tmp_path / "images"
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    path = root if kind == "folder" else zipped(tmp_path / "images.zip", dict.fromkeys(files, b"x"))
    assert list_images(path).labels() == labels


def test_a_zip_is_listed_in_order_without_clutter(tmp_path):
    members = [
        "b.JPG",
        "a.png",
        "sub/deep/c.jpeg",
        ".DS_Store",
        "__MACOSX/._b.jpg",
        "sub/._c.png",
        "notes.txt",
        "win\\d.png",
    ]
    path = zipped(tmp_path / "x.zip", dict.fromkeys(members, b"x"))
    with zipfile.ZipFile(path, "a") as archive:
        archive.mkdir("empty")
    assert names(path) == ["a.png", "b.JPG", "sub/deep/c.jpeg", "win/d.png"]


def linked(path: Path) -> None:
    info = zipfile.ZipInfo("link.png")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")


def patched(path: Path, field: int, value: int, size: str) -> None:
    """Change one field of the only member's entry in the central directory."""
    zipped(path, {"a.png": b"x" * 100})
    content = bytearray(path.read_bytes())
    struct.pack_into(size, content, content.index(b"PK\x01\x02") + field, value)
    path.write_bytes(content)


def overlapping(path: Path) -> None:
    """Two entries of the central directory with the same bytes behind them, as in the bombs of Fifield (2019)."""
    zipped(path, {"a.png": b"x" * 100, "b.png": b"x" * 100})
    content = bytearray(path.read_bytes())
    second = content.index(b"PK\x01\x02", content.index(b"PK\x01\x02") + 1)
    struct.pack_into("<I", content, second + 42, 0)
    path.write_bytes(content)


TRAPS = {
    "parent": (lambda p: zipped(p, {"../../evil.png": b"x"}), "../../evil.png is a path that leads out"),
    "inner parent": (lambda p: zipped(p, {"a/../../evil.png": b"x"}), "a path that leads out"),
    "windows parent": (lambda p: zipped(p, {"..\\evil.png": b"x"}), "a path that leads out"),
    "absolute": (lambda p: zipped(p, {"/etc/evil.png": b"x"}), "a path that leads out"),
    "drive": (lambda p: zipped(p, {"C:\\evil.png": b"x"}), "a path that leads out"),
    "not even an image": (lambda p: zipped(p, {"a.png": b"x", "../.bashrc": b"x"}), "a path that leads out"),
    "link": (linked, "link.png is a symbolic link"),
    "encrypted": (lambda p: patched(p, 8, 1, "<H"), "a.png is encrypted"),
    "method": (lambda p: zipped(p, {"a.png": b"x" * 99}, zipfile.ZIP_LZMA), "compressed with method 14"),
    "bomb": (lambda p: zipped(p, {"a.png": bytes(1 << 25)}), "a bomb (32"),
    "claimed bomb": (lambda p: patched(p, 24, 0xFFFFFFF0, "<I"), "that unpack to 4,294,967,280"),
    "overlap": (overlapping, "shares its bytes"),
    "no zip": (lambda p: p.write_bytes(b"PK nonsense"), "not a zip file, or is damaged"),
    "empty file": (lambda p: p.write_bytes(b""), "not a zip file, or is damaged"),
    "cut": (
        lambda p: p.write_bytes(zipped(p, {"a.png": b"x" * 999}).read_bytes()[:-30]),
        "not a zip file, or is damaged",
    ),
    "no images": (lambda p: zipped(p, {"notes.txt": b"x"}), "holds no images (.bmp, .gif"),
    "no members": (lambda p: zipped(p, {}), "holds no images"),
    "line end": (lambda p: zipped(p, {"../a\nb.png": b"x"}), "../a?b.png is a path that leads out"),
}


@pytest.mark.parametrize("kind", TRAPS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_traps_in_zips_are_one_line(tmp_path, kind):
    make, message = TRAPS[kind]
    make(tmp_path / "x.zip")
    with pytest.raises(DataError) as caught:
        list_images(tmp_path / "x.zip")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["x.zip"]


def test_no_folder_and_an_empty_one_are_one_line(tmp_path):
    with pytest.raises(DataError, match=r"no folder or zip .*gone: check the path"):
        list_images(tmp_path / "gone")
    with pytest.raises(DataError, match="holds no images"):
        list_images(tmp_path)

"""Fetching: against a server of our own that can be cut off, lie or fail, and from folders as people have them."""

import errno
import gzip
import hashlib
import os
import re
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.data.idx_files import NAMES, contents, known_set, write_set

from wiseale import registry
from wiseale.data import load_dataset
from wiseale.data.sets import fetch as fetching
from wiseale.data.sets.fetch import KnownFile, KnownFiles
from wiseale.data.sets.fetch import fetch as fetch_set
from wiseale.data.sets.mnist import Mnist
from wiseale.errors import ConfigError, DataError

FILES = contents()
SUMS = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
IMAGES = NAMES[0]
DEBIAN = Path("/usr/share/datasets/fashion-mnist")


@dataclass
class Server:
    """What to answer, and what was asked: (path, Range header)."""

    address: str = ""
    answers: dict[str, bytes] = field(default_factory=dict)
    cut_at: list[int] = field(default_factory=list)  # bytes after which each of the next answers breaks off
    ranges: bool = True
    sizes: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)

    def mirror(self, name: str) -> str:
        return f"{self.address}/{name}/"

    def offer(self, name: str, files: dict[str, bytes], level: int = 9) -> str:
        for file, content in files.items():
            self.answers[f"/{name}/{file}.gz"] = gzip.compress(content, level, mtime=0)
        return self.mirror(name)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers["Range"]
            told.asked.append((self.path, asked))
            body = told.answers.get(self.path)
            if body is None:
                self.send_error(404)
                return
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and told.ranges else 0
            if start >= len(body):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            if told.sizes:
                self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            cut = told.cut_at.pop(0) if told.cut_at else len(body)
            self.wfile.write(body[start : start + cut])

        def log_message(self, *arguments: object) -> None:
            pass

    for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Mnist, "files", known_set(FILES, SUMS))
    web = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.address = f"http://127.0.0.1:{web.server_address[1]}"
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield told
    web.shutdown()
    thread.join()
    web.server_close()


def arrived(root: Path) -> bool:
    """Whether the four files, and nothing else, are in place."""
    folder = root / "mnist"
    return {path.name: path.read_bytes() for path in folder.iterdir()} == FILES


def line(*arguments: object, **options: object) -> str:
    with pytest.raises((DataError, ConfigError)) as caught:
        fetch_set(*arguments, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_downloads_reports_and_loads(server: Server, tmp_path: Path) -> None:
    mirror = server.offer("a", FILES)
    heard: list[tuple[str, int, int | None]] = []
    paths = fetch_set("mnist", tmp_path, None, lambda *told: heard.append(told), mirrors=[mirror])
    assert arrived(tmp_path)
    assert [path.name for path in paths] == list(NAMES)
    size = len(server.answers[f"/a/{IMAGES}.gz"])
    assert [told for told in heard if told[0] == IMAGES][-1] == (IMAGES, size, size)
    assert len(load_dataset("mnist", tmp_path).train) == 30


def test_what_is_there_and_sound_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    mirror = server.offer("a", FILES)
    write_set(tmp_path / "mnist", FILES, zipped=True)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "mnist").iterdir()}
    fetch_set("mnist", tmp_path, mirrors=[mirror])
    assert server.asked == []
    (tmp_path / "mnist" / f"{IMAGES}.gz").write_bytes(gzip.compress(FILES[IMAGES])[:-20])
    fetch_set("mnist", tmp_path, mirrors=[mirror])
    assert [path for path, _ in server.asked] == [f"/a/{IMAGES}.gz"]
    assert len(load_dataset("mnist", tmp_path).train) == 30
    untouched = tmp_path / "mnist" / f"{NAMES[1]}.gz"
    assert untouched.stat().st_mtime_ns == before[untouched]


def test_a_cut_connection_is_continued_where_it_broke_off(server: Server, tmp_path: Path) -> None:
    mirror = server.offer("a", FILES)
    server.cut_at = [5000, 3000]
    fetch_set("mnist", tmp_path, mirrors=[mirror])
    assert arrived(tmp_path)
    asked = [wanted for path, wanted in server.asked if path.endswith(f"{IMAGES}.gz")]
    assert asked == [None, "bytes=5000-", "bytes=8000-"]


def test_the_next_call_continues_what_an_earlier_one_left(server: Server, tmp_path: Path) -> None:
    mirror = server.offer("a", FILES)
    server.cut_at = [1000] * fetching._ATTEMPTS
    assert "keeps breaking off" in line("mnist", tmp_path, mirrors=[mirror])
    left = 1000 * fetching._ATTEMPTS
    assert [path.name for path in (tmp_path / "mnist").iterdir()] == [f"{IMAGES}.gz.part"]
    server.asked.clear()
    fetch_set("mnist", tmp_path, mirrors=[mirror])
    assert server.asked[0][1] == f"bytes={left}-"
    assert arrived(tmp_path)


def test_a_server_without_ranges_starts_over(server: Server, tmp_path: Path) -> None:
    mirror = server.offer("a", FILES)
    server.cut_at, server.ranges = [5000], False
    fetch_set("mnist", tmp_path, mirrors=[mirror])
    assert arrived(tmp_path)


def test_a_server_that_tells_no_size_serves(server: Server, tmp_path: Path) -> None:
    mirror = server.offer("a", FILES)
    server.sizes = False
    fetch_set("mnist", tmp_path, mirrors=[mirror])
    assert arrived(tmp_path)


def test_the_beginning_from_another_mirror_does_not_spoil_the_file(server: Server, tmp_path: Path) -> None:
    first, second = server.offer("first", FILES, level=1), server.offer("second", FILES, level=0)
    server.cut_at = [1000] * fetching._ATTEMPTS
    fetch_set("mnist", tmp_path, mirrors=[first, second])
    assert arrived(tmp_path)


def test_a_complete_part_is_used(server: Server, tmp_path: Path) -> None:
    mirror = server.offer("a", FILES)
    part = tmp_path / "mnist" / f"{IMAGES}.gz.part"
    part.parent.mkdir()
    part.write_bytes(server.answers[f"/a/{IMAGES}.gz"])
    fetch_set("mnist", tmp_path, mirrors=[mirror])
    assert arrived(tmp_path)


def test_the_second_mirror_serves_where_the_first_has_nothing(server: Server, tmp_path: Path) -> None:
    fetch_set("mnist", tmp_path, mirrors=[server.mirror("gone"), server.offer("b", FILES)])
    assert arrived(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (FILES[IMAGES][:-1] + b"?", "checksum mismatch"),
        (FILES[IMAGES][:-1], "bytes, not"),
        (FILES[IMAGES] + b"?", "more than"),
        (bytes(50_000_000), "more than"),
    ],
)
def test_wrong_content_is_never_kept(server: Server, tmp_path: Path, wrong: bytes, said: str) -> None:
    bad = server.offer("bad", FILES | {IMAGES: wrong})
    good = tmp_path / "mnist" / IMAGES
    good.parent.mkdir()
    good.write_bytes(b"what was there before")
    assert said in line("mnist", tmp_path, mirrors=[bad])
    assert [path.name for path in (tmp_path / "mnist").iterdir()] == [IMAGES]
    assert good.read_bytes() == b"what was there before"
    fetch_set("mnist", tmp_path, mirrors=[bad, server.offer("good", FILES)])
    assert arrived(tmp_path)


def test_what_is_not_gzip_at_all_is_refused(server: Server, tmp_path: Path) -> None:
    server.answers[f"/a/{IMAGES}.gz"] = b"<html>please log in</html>"
    assert "it has 26 bytes, not" in line("mnist", tmp_path, mirrors=[server.mirror("a")])


@pytest.mark.parametrize("sizes", [True, False])
def test_an_endless_answer_is_cut(server: Server, tmp_path: Path, sizes: bool) -> None:
    server.answers[f"/a/{IMAGES}.gz"] = bytes(10 * len(FILES[IMAGES]))
    server.sizes = sizes
    assert "more " in line("mnist", tmp_path, mirrors=[server.mirror("a")])
    assert list((tmp_path / "mnist").iterdir()) == []


def test_when_all_mirrors_fail_they_are_named(server: Server, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/"
    said = line("mnist", tmp_path, mirrors=[server.mirror("gone"), closed], timeout=5)
    assert re.search(rf"{server.mirror('gone')} \(HTTP 404 Not Found\), {closed} \(.*refused\)", said)
    assert "run `wiseale data fetch mnist --from DIR`" in said


def test_a_mirror_that_never_answers_is_left_for_the_next(server: Server, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        mute = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert f"{mute} (timed out)" in line("mnist", tmp_path, mirrors=[mute], timeout=0.1)
        fetch_set("mnist", tmp_path, mirrors=[mute, server.offer("b", FILES)], timeout=0.1)
    assert arrived(tmp_path)


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("place", [".", "data"])
@pytest.mark.parametrize("dotted", [False, True])
def test_a_folder_serves(server: Server, tmp_path: Path, zipped: bool, place: str, dotted: bool) -> None:
    files = {name.replace("-idx", ".idx") if dotted else name: content for name, content in FILES.items()}
    write_set(tmp_path / "theirs" / place, files, zipped=zipped)
    fetch_set("mnist", tmp_path / "root", tmp_path / "theirs")
    assert arrived(tmp_path / "root")
    assert server.asked == []


def test_a_folder_that_will_not_do_is_one_line(server: Server, tmp_path: Path) -> None:
    assert "is not a folder" in line("mnist", tmp_path, tmp_path / "none")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"{empty} holds no {IMAGES}" in line("mnist", tmp_path, empty)
    write_set(tmp_path / "theirs", FILES | {NAMES[2]: FILES[NAMES[0]]})
    assert "t10k-images-idx3-ubyte.gz is not the MNIST file of that name" in line(
        "mnist", tmp_path, tmp_path / "theirs"
    )
    assert sorted(path.name for path in (tmp_path / "mnist").iterdir()) == sorted(NAMES[:2])
    cut = tmp_path / "theirs" / f"{NAMES[2]}.gz"
    cut.write_bytes(gzip.compress(FILES[NAMES[2]])[:-10])
    assert "damaged or cut short" in line("mnist", tmp_path, tmp_path / "theirs")


class Ramp:
    """A dataset of another format, as somebody might add it: one uncompressed file."""

    content = bytes(range(100))
    files = KnownFiles(
        name="ramp",
        title="Ramp",
        folders=("ramp",),
        mirrors=(),
        files=(KnownFile("ramp.npy", 100, hashlib.sha256(content).hexdigest()),),
        remote_suffix="",
    )


def test_any_registered_dataset_that_declares_its_files_is_fetched(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.DATASETS, "ramp", f"{__name__}:Ramp")
    server.answers["/a/ramp.npy"] = Ramp.content
    assert fetch_set("ramp", tmp_path, mirrors=[server.mirror("a")]) == [tmp_path / "ramp" / "ramp.npy"]
    assert (tmp_path / "ramp" / "ramp.npy").read_bytes() == Ramp.content
    assert "(known: fashion_mnist, mnist, ramp)" in line("sine", tmp_path)


def test_unknown_sets_and_unwritable_places_are_one_line(server: Server, tmp_path: Path) -> None:
    assert "did you mean 'mnist'" in line("mnits", tmp_path)
    (tmp_path / "file").write_text("")
    write_set(tmp_path / "theirs", FILES)
    assert "cannot fetch MNIST into" in line("mnist", tmp_path / "file", tmp_path / "theirs")


@pytest.mark.parametrize("from_folder", [False, True])
def test_a_full_disk_leaves_nothing_half_written(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_folder: bool
) -> None:
    mirror = server.offer("a", FILES)
    write_set(tmp_path / "theirs", FILES)

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = line("mnist", tmp_path, tmp_path / "theirs" if from_folder else None, mirrors=[mirror])
    assert "No space left on device" in said
    assert {path.suffix for path in (tmp_path / "mnist").iterdir()} <= {".part"}


def test_the_real_sets_have_the_known_sums(tmp_path: Path) -> None:
    root = os.environ.get("WISEALE_DATA")
    real = {"mnist": Path(root) / "mnist" if root else None, "fashion_mnist": DEBIAN}
    there = {name: folder for name, folder in real.items() if folder is not None and folder.is_dir()}
    if not there:
        pytest.skip("set WISEALE_DATA to a folder that has mnist/, or install Debian's dataset-fashion-mnist")
    for name, folder in there.items():
        paths = fetch_set(name, tmp_path, folder)
        assert [path.stat().st_size for path in paths] == [47_040_016, 60_008, 7_840_016, 10_008]
        dataset = load_dataset(name, tmp_path)
        assert dataset.test is not None
        assert (len(dataset.train), len(dataset.test)) == (60_000, 10_000)
        shutil.rmtree(tmp_path / name)

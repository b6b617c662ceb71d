"""A library is loaded only if nobody else could have written it and it is the file that was built."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wiseale import kernels
from wiseale.kernels import build
from wiseale.kernels.build import BASE_FLAGS, SOURCES

pytestmark = [
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
    pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here"),
]


@pytest.fixture(scope="module")
def quick_compiler(tmp_path_factory) -> str:
    """A compiler that copies a library that was compiled before to the path after -o, its last argument."""
    folder = tmp_path_factory.mktemp("compiler")
    compiled, script = folder / "compiled.so", folder / "cc"
    sources = [source for source in SOURCES if source.suffix == ".c"]
    subprocess.run(["cc", *BASE_FLAGS, *sources, "-o", compiled], check=True)
    script.write_text(f'#!/bin/sh\nfor last; do :; done\n[ "$1" = --version ] || cp {compiled} "$last"\n')
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def library(cache, quick_compiler, monkeypatch) -> Path:
    """A library that was installed in the cache."""
    monkeypatch.setenv("CC", quick_compiler)
    assert kernels.state() == "compiled by cc for one thread"
    (path,) = cache.glob("*.so")
    return path


def state_when_asked_again() -> str:
    build.kernels.cache_clear()
    return kernels.state()


def test_folder_and_files_are_private(library, cache):
    (record,) = cache.glob("*.sha256")
    assert [path.stat().st_mode & 0o777 for path in (cache, library, record)] == [0o700, 0o700, 0o600]
    assert build.doubt_about_folder(cache) is None
    assert build.is_intact(library)


def truncate(library: Path) -> None:
    data = library.read_bytes()
    library.unlink()  # a new file: this process still has the old one mapped
    library.write_bytes(data[: len(data) // 2])
    library.chmod(0o700)


def replace_by_another_library(library: Path) -> None:
    data = library.read_bytes()
    library.unlink()
    library.write_bytes(data + b"\0")
    library.chmod(0o700)


def replace_by_symlink(library: Path) -> None:
    target = library.parent.parent / "elsewhere.so"
    library.rename(target)
    library.symlink_to(target)


def record(library: Path) -> Path:
    return library.with_name(library.name + ".sha256")


DAMAGES = {
    "truncated": truncate,
    "other contents": replace_by_another_library,
    "symbolic link": replace_by_symlink,
    "writable by others": lambda library: library.chmod(0o722),
    "wrong record": lambda library: record(library).write_text("0" * 64 + "\n"),
    "record of other bytes": lambda library: record(library).write_bytes(b"\xff\xfe"),
    "no record": lambda library: record(library).unlink(),
    "record writable by others": lambda library: record(library).chmod(0o622),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_library_in_doubt_is_built_again(damage, library):
    inode = library.lstat().st_ino
    damage(library)
    assert not build.is_intact(library)
    assert state_when_asked_again() == "compiled by cc for one thread"
    assert build.is_intact(library)
    assert library.lstat().st_ino != inode


def test_a_truncated_library_does_not_crash_the_next_process(library):
    truncate(library)
    command = [sys.executable, "-c", "from wiseale import kernels; print(kernels.state())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == kernels.state()


def test_a_folder_writable_by_others_is_not_used(library, cache):
    before = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    cache.chmod(0o770)
    assert state_when_asked_again().endswith(
        f", for this process only: other users may write to {cache} (chmod 700 it)"
    )
    assert kernels.available()
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == before


def test_a_folder_behind_a_symbolic_link_is_not_used(library, cache):
    cache.rename(cache.with_name("elsewhere"))
    cache.symlink_to(cache.with_name("elsewhere"))
    assert state_when_asked_again().endswith(f"for this process only: {cache} is a symbolic link")


def test_folders_and_files_of_another_user(library, cache, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert build.doubt_about_folder(cache) == f"{cache} belongs to another user"
    assert not build.is_intact(library)


def test_systems_without_owners_check_the_contents_only(library, cache, monkeypatch):
    monkeypatch.delattr(os, "geteuid")
    cache.chmod(0o777)
    library.chmod(0o777)
    assert build.doubt_about_folder(cache) is None
    assert build.is_intact(library)
    truncate(library)
    assert not build.is_intact(library)

"""An exclusive lock is held by one process at a time, and a kill releases it."""

import errno
import subprocess
import sys
import threading

import filelock
import pytest

from wiseale.errors import RunError
from wiseale.platform.locks import exclusive_lock, is_locked, reserved

HOLD = (
    "import sys, time; from pathlib import Path; from wiseale.platform.locks import exclusive_lock\n"
    "with exclusive_lock(Path(sys.argv[1]), wait=False): print('held', flush=True); time.sleep(60)"
)


@pytest.fixture(params=["folder", "file"])
def locked(request, tmp_path):
    return tmp_path if request.param == "folder" else tmp_path / "pack.lock"


def test_another_process_is_refused_until_the_holder_is_killed(locked):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(locked)], stdout=subprocess.PIPE, text=True)
    with holder:
        try:
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(BlockingIOError), exclusive_lock(locked, wait=False):
                pass
        finally:
            holder.kill()
    with exclusive_lock(locked, wait=False):
        pass


def test_waiting_ends_when_the_lock_is_released(locked):
    order = []

    def wait():
        with exclusive_lock(locked, wait=True):
            order.append("second")

    thread = threading.Thread(target=wait)
    with exclusive_lock(locked, wait=False):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]


def test_waiting_ends_after_its_time(locked):
    with exclusive_lock(locked, wait=False):
        with pytest.raises(BlockingIOError), exclusive_lock(locked, wait=0.1):
            pass
        assert is_locked(locked, wait=0.1)
    assert not is_locked(locked)


def test_a_folder_in_use_is_named(tmp_path):
    refused = pytest.raises(RunError, match=f"{tmp_path.name} is in use by another process")
    with reserved(tmp_path), refused, reserved(tmp_path):
        pass
    with reserved(tmp_path):
        pass


def test_a_file_system_without_locks_is_refused_in_words(tmp_path, monkeypatch):
    def unsupported(lock, timeout):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelock.FileLock, "acquire", unsupported)
    with pytest.raises(RunError, match="has no locks"), exclusive_lock(tmp_path / "job.lock", wait=False):
        pass

"""Which mounts keep locks to each machine: lines as Linux writes them in /proc/self/mountinfo."""

from pathlib import Path

import pytest

from wiseale.errors import RunError
from wiseale.platform import locks
from wiseale.platform.file_systems import find_mount, locks_of_one_machine
from wiseale.platform.locks import exclusive_lock

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:9 - nfs4 server:/home rw,vers=4.2,hard,local_lock=none,addr=10.0.0.1
31 22 0:41 / /old rw,relatime - nfs server:/old rw,vers=3,nolock,local_lock=all
32 22 0:42 / /flock rw - nfs server:/flock rw,vers=3,local_lock=flock
33 22 0:43 / /win rw - cifs //server/win rw,nobrl
34 22 0:44 / /smb rw - cifs //server/smb rw
35 22 0:45 / /scratch rw - lustre server:/scratch rw,flock
36 22 0:46 / /scratch2 rw - lustre server:/scratch2 rw
37 22 0:47 / /my\040mount rw - fuse.sshfs me@server:/ rw,user_id=0
38 37 8:2 / /my\040mount/disk rw - xfs /dev/sdb rw
""".strip()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/tmp/x", None),
        ("/home/me/runs", None),
        ("/homes", None),
        ("/old/x", "nfs mounted with nolock"),
        ("/flock/x", None),  # flock stays on the machine, POSIX locks do not
        ("/win/x", "cifs mounted with nobrl"),
        ("/smb/x", None),
        ("/scratch/x", None),
        ("/scratch2/x", "lustre mounted with no flock"),
        ("/my mount/x", "fuse.sshfs"),
        ("/my mount/disk/x", None),
    ],
)
def test_mounts_whose_locks_stay_on_the_machine(path, expected):
    assert locks_of_one_machine(Path(path), MOUNTS) == expected


def test_a_mount_on_the_same_place_hides_the_earlier_one():
    twice = MOUNTS + "\n50 30 0:50 / /home rw - tmpfs tmpfs rw"
    assert find_mount(Path("/home/x"), MOUNTS).kind == "nfs4"
    assert find_mount(Path("/home/x"), twice).kind == "tmpfs"


def test_a_second_machine_is_refused_where_locks_do_not_hold_between_machines(tmp_path, monkeypatch):
    monkeypatch.setattr(locks, "locks_of_one_machine", lambda path: "nfs mounted with nolock")
    monkeypatch.setattr(locks.platform, "node", lambda: "first")
    (tmp_path / "job.lock.owner").write_text("second")
    with pytest.raises(RunError, match=r"in use on second, .* nfs mounted with nolock .* delete .*job\.lock\.owner"):
        exclusive_lock(tmp_path / "job.lock", wait=False).__enter__()
    (tmp_path / "job.lock.owner").write_text("first")  # left by a kill on this machine
    with exclusive_lock(tmp_path / "job.lock", wait=False):
        assert (tmp_path / "job.lock.owner").read_text() == "first"
    assert not (tmp_path / "job.lock.owner").exists()


def test_a_file_system_without_locks_is_refused_in_words(tmp_path, monkeypatch):
    def unsupported(descriptor):
        raise OSError(locks.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(locks.sys, "platform", "linux")
    monkeypatch.setattr(locks, "_acquire_posix", unsupported)
    with pytest.raises(RunError, match="has no locks: choose a folder on another"):
        exclusive_lock(tmp_path / "job.lock", wait=False).__enter__()

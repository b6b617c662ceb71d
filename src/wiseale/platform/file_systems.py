"""Whether locks on a file system hold between machines, as far as Linux tells from how it is mounted."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")

# Options with which a network file system keeps POSIX locks on each machine for itself.
_OWN_LOCKS = {
    "nfs": ("nolock", "local_lock=posix", "local_lock=all"),
    "nfs4": ("nolock", "local_lock=posix", "local_lock=all"),
    "cifs": ("nobrl",),
    "smb3": ("nobrl",),
    "lustre": ("localflock", "noflock"),
}

# These never ask the machine that holds the files.
_NEVER_SHARED = (
    *("9p", "virtiofs", "vboxsf", "fuse.sshfs", "fuse.rclone"),
    *("fuse.s3fs", "fuse.mount-s3", "fuse.goofys", "fuse.gcsfuse", "fuse.blobfuse2"),
)


@dataclass(frozen=True)
class Mount:
    """A mounted file system: where, of which kind, with which options."""

    point: Path
    kind: str
    options: frozenset[str]


def locks_of_one_machine(path: Path, mounts: str | None = None) -> str | None:
    """The file system of the path, if its locks hold on each machine only; None where they hold, or nothing is known.

    ``mounts`` is the text of ``/proc/self/mountinfo``.
    """
    mount = find_mount(path, mounts)
    if mount is None:
        return None
    if mount.kind in _NEVER_SHARED:
        return mount.kind
    found = [option for option in _OWN_LOCKS.get(mount.kind, ()) if option in mount.options]
    if mount.kind == "lustre" and "flock" not in mount.options:
        found = found or ["no flock"]
    return f"{mount.kind} mounted with {found[0]}" if found else None


def find_mount(path: Path, mounts: str | None = None) -> Mount | None:
    """The file system that holds the path; None on systems other than Linux."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return None
    place = Path(os.path.realpath(path))
    found: Mount | None = None
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if len(left) < 6 or len(right) < 3:
            continue
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), left[4]))
        # Of two mounts on the same place the later one hides the earlier.
        if place.is_relative_to(point) and (found is None or len(point.parts) >= len(found.point.parts)):
            found = Mount(point, right[0], frozenset(f"{left[5]},{right[2]}".split(",")))
    return found

"""The command line in processes of its own, and what a run leaves on disk."""

import subprocess
import sys
from pathlib import Path


def wiseale(*arguments, launcher=(), **options):
    """Start a command; ``launcher`` stands between the interpreter and it."""
    return subprocess.Popen(
        [sys.executable, *launcher, "-m", "wiseale", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )


def finish(process, code=0):
    """Wait for a command; everything it printed."""
    output, _ = process.communicate(timeout=120)
    assert process.returncode == code, output
    return output


def rank_ids(process) -> list[int]:
    """Process ids of the ranks a command has started, in order."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

    def rank(child):
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        return next(int(entry[5:]) for entry in environment if entry.startswith(b"RANK="))

    return sorted(map(int, children), key=rank)


def newest_step(run: Path) -> int:
    """The step of the newest checkpoint, -1 where there is none."""
    return max((int(path.name) for path in (run / "checkpoints").glob("[0-9]*")), default=-1)


def content(run: Path) -> dict[str, bytes]:
    """Every byte of a run but the times, the environment and its place."""
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and path.name not in ("timing.jsonl",)]
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


def at_the_end(run: Path) -> dict[str, bytes]:
    """What a run leaves, without the last checkpoint but one: an interruption is one more occasion to save."""
    last = f"checkpoints/{newest_step(run):06d}/"
    return {name: data for name, data in content(run).items() if "checkpoints" not in name or name.startswith(last)}

"""Worker processes that decode blocks of images, fed one block at a time by one thread each.

They are plain programs talking through pipes, not ``multiprocessing``: forking a process with threads (torch has many)
is unsafe, and spawning would run the user's script again. When their parent dies, even by SIGKILL, so do they.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from wiseale.data.images import decode
from wiseale.data.images.decode import Form


@dataclass(frozen=True)
class Setup:
    """What every worker is told first: where the images are, where the rows go, and what images become."""

    origin: str
    target: str
    is_zip: bool
    form: Form


@dataclass(frozen=True)
class Job:
    """One block: where its rows go in the file, and its images, by name or by their place in the zip."""

    block: int
    offset: int
    places: list[str | tuple[int, ...]]


@dataclass(frozen=True)
class Answer:
    """What became of a block: checksum of its rows and reason by image that is bad; or why it could not be made."""

    block: int
    crc: int = 0
    bad: dict[str, str] = field(default_factory=dict)
    errno: int | None = None
    problem: str = ""
    fault: str = ""
    exit_code: int | None = None


def decode_blocks(setup: Setup, jobs: Iterable[Job], processes: int) -> Generator[Answer, None, None]:
    """The answer to each job, as they come; close it to stop the workers early."""
    pending, turn = iter(jobs), threading.Lock()
    answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
    workers = [_start(setup) for _ in range(processes)]
    threads = [threading.Thread(target=_serve, args=(worker, pending, turn, answers)) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            while (answer := answers.get()) is not None:
                yield answer
    finally:
        for worker in workers:
            worker.kill()
        for worker, thread in zip(workers, threads, strict=True):
            thread.join()
            with suppress(BrokenPipeError), worker:  # waits, and closes the pipes
                pass


def _start(setup: Setup) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-P", decode.__file__],  # -P: the folder of decode.py is no place to import from
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # image libraries print their own warnings there
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    with suppress(BrokenPipeError):
        _send(worker, asdict(setup))
    return worker


def _serve(
    worker: subprocess.Popen[str],
    pending: Iterator[Job],
    turn: threading.Lock,
    answers: queue.SimpleQueue[Answer | None],
) -> None:
    while True:
        with turn:
            job = next(pending, None)
        if job is None:
            break
        reply = ""
        with suppress(BrokenPipeError):
            _send(worker, {"offset": job.offset, "places": job.places})
            assert worker.stdout is not None
            reply = worker.stdout.readline()
        if not reply:
            answers.put(Answer(job.block, exit_code=worker.wait()))
            break
        answers.put(Answer(job.block, **json.loads(reply)))
    answers.put(None)


def _send(worker: subprocess.Popen[str], values: object) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(values) + "\n")
    worker.stdin.flush()

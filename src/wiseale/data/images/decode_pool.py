"""Worker processes that decode blocks of images; one thread per worker sends it one block at a time.

The workers are plain programs that communicate through pipes, not ``multiprocessing``: forking a process with threads
(torch has many) is unsafe, and spawning would run the user's script again. When the parent dies, even by SIGKILL, its
pipes close and the workers end.
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
class WorkerSetup:
    """Settings sent to a worker first: folder or zip of the images, and the packed form."""

    origin: str
    is_zip: bool
    form: Form


@dataclass(frozen=True)
class Job:
    """One block: the file for its rows, their byte offset in it, and its images, by name or by location in the zip."""

    block: int
    target: str
    offset: int
    places: list[str | tuple[int, ...]]


@dataclass(frozen=True)
class BlockResult:
    """The result of a block: CRC of its rows, and image index → reason for bad images; or why decoding failed.

    A worker reports ``errno`` and ``problem`` if it cannot write, ``fault`` (a traceback) for an error in our code;
    ``exit_code`` is set if the worker died.
    """

    block: int
    crc: int = 0
    bad: dict[str, str] = field(default_factory=dict)
    errno: int | None = None
    problem: str = ""
    fault: str = ""
    exit_code: int | None = None


def decode_blocks(setup: WorkerSetup, jobs: Iterable[Job], processes: int) -> Generator[BlockResult, None, None]:
    """Decode the jobs and yield their results as they finish; closing the generator stops the workers."""
    pending, jobs_lock = iter(jobs), threading.Lock()
    results: queue.SimpleQueue[BlockResult | None] = queue.SimpleQueue()
    workers = [_start_worker(setup) for _ in range(processes)]
    threads = [threading.Thread(target=_feed_worker, args=(worker, pending, jobs_lock, results)) for worker in workers]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            while (result := results.get()) is not None:
                yield result
    finally:
        for worker in workers:
            worker.kill()
        for worker, thread in zip(workers, threads, strict=True):
            thread.join()
            with suppress(BrokenPipeError), worker:  # leaving the context waits for the worker and closes its pipes
                pass


def _start_worker(setup: WorkerSetup) -> subprocess.Popen[str]:
    worker = subprocess.Popen(
        [sys.executable, "-P", decode.__file__],  # -P: do not import modules from the folder of decode.py
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # image libraries print their own warnings there
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        text=True,
    )
    with suppress(BrokenPipeError):
        _send(worker, asdict(setup))
    return worker


def _feed_worker(
    worker: subprocess.Popen[str],
    pending: Iterator[Job],
    jobs_lock: threading.Lock,
    results: queue.SimpleQueue[BlockResult | None],
) -> None:
    while True:
        with jobs_lock:
            job = next(pending, None)
        if job is None:
            break
        reply = ""
        with suppress(BrokenPipeError):
            _send(worker, {"target": job.target, "offset": job.offset, "places": job.places})
            assert worker.stdout is not None
            reply = worker.stdout.readline()
        if not reply:
            results.put(BlockResult(job.block, exit_code=worker.wait()))
            break
        results.put(BlockResult(job.block, **json.loads(reply)))
    results.put(None)


def _send(worker: subprocess.Popen[str], values: object) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(values) + "\n")
    worker.stdin.flush()

"""Our training loop against a hand-written one and those of other libraries: same layers, data, batch and threads."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Mapping
from statistics import median
from unittest import mock

import numpy as np
import torch

from bench.plain import BATCH, LR, PEERS, Case, Epoch, missing, plain
from bench.table import Table, ratio_of_medians
from wiseale import config, kernels
from wiseale.data import load_dataset
from wiseale.data.dataset import Rows
from wiseale.kernels import build
from wiseale.networks.model import Model, seeded
from wiseale.objectives import make_objective
from wiseale.spaces import plain_space
from wiseale.training.batches import Batches
from wiseale.training.learner import Learner
from wiseale.training.loop import EpochRecord, fit
from wiseale.training.plan import default_threads, fastest_threads
from wiseale.training.settings import Constant, Plan

OURS = ("aevb", "wise_ale")


def measure(quick: bool) -> list[Table]:
    steps, repeats = (20, 5) if quick else (60, 9)
    return [
        against_peers(steps, repeats),
        side_by_side(steps, repeats),
        thread_choice(steps, repeats),
        compiling(repeats),
    ]


def cases(steps: int) -> list[Case]:
    waves = load_dataset(f"sine:n={steps * BATCH},n_test=1").train.x
    digits = load_dataset("mnist").train.x[: steps * BATCH] >= 128
    return [
        Case("sine", "paper_sine", "gaussian", 4, torch.from_numpy(waves)),
        Case("MNIST", "paper_mnist", "bernoulli", 2, torch.from_numpy(digits.astype(np.float32))),
    ]


def against_peers(steps: int, repeats: int) -> Table:
    """Milliseconds per step of every contender, and the plain loop's over each."""
    peers = {name: make for name, make in PEERS.items() if not missing(name)}
    rows: list[tuple[str | float, ...]] = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for case in cases(steps):
            contenders = {name: make(case) for name, make in peers.items()}
            contenders |= {f"wiseale, {objective}": ours(case, objective) for objective in OURS}
            contenders["wiseale, aevb, without kernels"] = without_kernels(ours(case, "aevb"))
            times = interleaved(contenders, repeats)
            for name, seconds in times.items():
                ratio = ratio_of_medians(times["plain"], seconds)
                rows.append((case.name, threads, name, 1e3 * median(seconds) / steps, ratio))
            rows += [(case.name, threads, name, missing(name), "-") for name in PEERS if name not in peers]
    caption = (
        f"The paper's networks at batch {BATCH}: milliseconds per step, medians of {repeats} interleaved epochs of "
        f"{steps} steps. Plain: torch's layers, one tensor indexed by a permutation, fused Adam, AEVB. "
        "Ours also draws keyed noise, logs every term and watches for divergence. "
        f"Kernels: {kernels.state()}."
    )
    return Table("training", caption, ("network", "threads", "loop", "ms per step", "speed over plain"), tuple(rows))


def interleaved(contenders: Mapping[str, Epoch], repeats: int) -> dict[str, list[float]]:
    """Seconds of each contender's epochs, turn by turn, after one of each to warm up."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for repeat in range(repeats + 1):
        for name, epoch in contenders.items():
            seconds = epoch()
            if repeat:
                times[name].append(seconds)
    return times


def side_by_side(steps: int, repeats: int) -> Table:
    """Two of our runs at once on one thread each, as ``compare`` makes them, beside two plain ones in turn on two."""
    rows = []
    for index, case in enumerate(cases(steps)):
        torch.set_num_threads(2)
        one_after_the_other = plain(case)
        context = multiprocessing.get_context("spawn")
        pipes = []
        for _ in range(2):
            here, there = context.Pipe()
            context.Process(target=_serve, args=(there, index, steps), daemon=True).start()
            pipes.append(here)
        for pipe in pipes:
            pipe.recv()  # warmed up

        def at_once(pipes: list = pipes) -> float:
            started = time.perf_counter()
            for pipe in pipes:
                pipe.send("go")
            for pipe in pipes:
                pipe.recv()
            return time.perf_counter() - started

        def in_turn(epoch: Epoch = one_after_the_other) -> float:
            return epoch() + epoch()

        times = interleaved({"plain": in_turn, "ours": at_once}, repeats)
        for pipe in pipes:
            pipe.send("stop")
        rows.append((case.name, median(times["plain"]), median(times["ours"]), ratio_of_medians(*times.values())))
    caption = (
        f"Two runs of {steps} steps: plain AEVB loops one after the other on 2 threads, and two WiSE-ALE runs of ours "
        f"at once on 1 thread each; seconds, medians of {repeats} interleaved."
    )
    return Table("side_by_side", caption, ("network", "plain, in turn", "wiseale, at once", "speed"), tuple(rows))


def _serve(pipe, index: int, steps: int) -> None:
    torch.set_num_threads(1)
    epoch = ours(cases(steps)[index], "wise_ale")
    epoch()
    pipe.send("ready")
    while pipe.recv() == "go":
        epoch()
        pipe.send("done")


def thread_choice(steps: int, repeats: int) -> Table:
    """What ``--threads auto`` measures and what the default rule gives, and our training step at both."""
    rows = []
    for case in cases(steps):
        shape, default = tuple(case.x.shape[1:]), default_threads()
        started = time.perf_counter()
        auto = fastest_threads(case.network, case.likelihood, shape, case.latent, case.batch, "cpu")
        seconds = time.perf_counter() - started
        epoch = ours(case, "aevb")
        times = interleaved({"default": with_threads(epoch, default), "auto": with_threads(epoch, auto)}, repeats)
        ms = (1e3 * median(taken) / steps for taken in times.values())
        rows.append((case.name, default, auto, *ms, ratio_of_medians(*times.values()), seconds))
    caption = (
        f"Threads by the default rule and by --threads auto: milliseconds per step, medians of {repeats} interleaved."
    )
    columns = ("network", "default", "auto", "ms, default", "ms, auto", "speed of auto", "seconds to choose")
    return Table("thread_choice", caption, columns, tuple(rows))


def with_threads(measured: Epoch, threads: int) -> Epoch:
    def epoch() -> float:
        torch.set_num_threads(threads)
        return measured()

    return epoch


def model_of(case: Case) -> Model:
    with seeded(0):
        return Model(
            *(config.build("network", case.network), plain_space(tuple(case.x.shape[1:])), case.latent),
            config.build("likelihood", case.likelihood),
        )


def ours(case: Case, objective: str) -> Epoch:
    """One epoch of the loop a user gets, without a run directory."""
    model = model_of(case)
    learner = Learner.fresh(model, make_objective(objective).build(model.space, case.latent), LR)
    batches = Batches(Rows(case.x.numpy()))

    def epoch() -> float:
        started = time.perf_counter()
        plan = Plan(batch_size=case.batch, max_epochs=learner.progress.epoch + 1, lr=LR, lr_schedule=Constant())
        fit(learner, batches, None, plan, Quiet())
        return time.perf_counter() - started

    return epoch


def without_kernels(measured: Epoch) -> Epoch:
    """The same on a machine without a C compiler."""

    def in_torch() -> float:
        with mock.patch.object(build, "kernels", return_value=build.Kernels(None, "left out")):
            return measured()

    return in_torch


def compiling(repeats: int) -> Table:
    """Seconds to compile the kernels, once per machine."""
    seconds = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"WISEALE_CACHE": folder}):
            started = time.perf_counter()
            build.kernels.__wrapped__()
            seconds.append(time.perf_counter() - started)
    caption = f"Compiling the kernels, once per machine and processor; median of {repeats}."
    return Table("compiling", caption, ("kernels", "seconds"), ((kernels.state(), median(seconds)),))


class Quiet:
    """A journal that keeps nothing."""

    def step(self, epoch: int, step_in_epoch: int, steps_per_epoch: int, terms: dict[str, float]) -> None: ...

    def epoch(self, record: EpochRecord) -> None: ...

    def checkpoint(self, learner: Learner) -> None: ...

    def interrupted(self) -> bool:
        return False

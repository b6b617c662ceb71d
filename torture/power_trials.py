"""Loss of power while a run, a model, a pack or a result is written: every state it may leave must be usable."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torture.attempts import Draws, Ending, command, forked
from torture.power_loss import Tree, record
from torture.subjects import TRAIN, Subjects, content, difference

SAVES = ("--checkpoint-every", "4")


@dataclass(frozen=True)
class Scenario:
    """Something that writes into a folder, and a judge of what a loss of power has left of it."""

    begin: Callable[[Subjects, Path], None]
    write: Callable[[Subjects, Path], None]
    judge: Callable[[Subjects, Path, Path], str | None]


def _wiseale(*arguments: object) -> None:
    from wiseale.cli import main

    try:
        main([str(word) for word in arguments])
    except SystemExit as ended:
        if ended.code:
            raise


def _train(subjects: Subjects, folder: Path) -> None:
    _wiseale("train", subjects.table, *TRAIN, *SAVES, "--out", folder / "new" / "run")


def _judge_run(subjects: Subjects, left: Path, work: Path) -> str | None:
    run = left / "new" / "run"
    arguments = ("resume", run) if run.exists() else ("train", subjects.table, *TRAIN, *SAVES, "--out", run)
    if fault := command(*arguments, folder=work).fault(allowed=(0,)):
        return fault
    whole = {name: data for name, data in content(subjects.run).items() if name not in ("config.json",)}
    found = {name: data for name, data in content(run).items() if name in whole or "environment" not in name}
    return _without(found, whole)


def _without(found: dict[str, bytes], whole: dict[str, bytes]) -> str | None:
    """Compare what does not depend on how often the run was saved."""
    chosen = ("model/", "metrics.jsonl")
    return difference(*({k: v for k, v in one.items() if k.startswith(chosen)} for one in (found, whole)))


def _two_models(subjects: Subjects, folder: Path) -> None:
    subjects.copy(subjects.run / "model", folder / "model")


def _replace_model(subjects: Subjects, folder: Path) -> None:
    from wiseale.estimator.loading import load

    estimator = load(subjects.run / "model")
    next(iter(estimator.model_.parameters())).data.mul_(2.0)
    estimator.save(folder / "model")


def _judge_model(subjects: Subjects, left: Path, work: Path) -> str | None:
    return command("embed", left / "model", subjects.table, "-o", work / "codes.csv", folder=work).fault(allowed=(0,))


def _pack(subjects: Subjects, folder: Path) -> None:
    os.environ["WISEALE_CACHE"] = str(folder / "cache")
    _wiseale("data", "pack", f"{subjects.images}:size=16")


def _old_pack(subjects: Subjects, folder: Path) -> None:
    """A pack of the same name that has to be replaced: it was made from other images."""
    from wiseale.platform.json_files import parse_table, sealed, unseal

    packs = subjects.copy(subjects.cache / "packs", folder / "cache" / "packs")
    for manifest in packs.rglob("manifest.json"):
        values = unseal(parse_table(manifest.read_text()))
        manifest.write_text(sealed(values | {"source": "other"}))


def _judge_pack(subjects: Subjects, left: Path, work: Path) -> str | None:
    def info(cache: Path) -> Ending:
        arguments = ("data", "info", f"{subjects.images}:size=16", "-o", work / "x.png")
        return command(*arguments, folder=work, prepare=lambda: os.environ.update(WISEALE_CACHE=str(cache)))

    ending, whole = info(left / "cache"), info(subjects.cache)
    if fault := ending.fault(allowed=(0,)):
        return fault
    return None if ending.out == whole.out else f"told {ending.out}"


def _old_results(subjects: Subjects, folder: Path) -> None:
    subjects.copy(subjects.run, folder / "run")


def _write_results(subjects: Subjects, folder: Path) -> None:
    _wiseale("evaluate", folder / "run", "--no-figures", "--seed", "1")
    _wiseale("embed", folder / "run", subjects.table, "-o", folder / "codes.npz")
    _wiseale("export", folder / "run", "--format", "model", "-o", folder / "exported")


def _judge_results(subjects: Subjects, left: Path, work: Path) -> str | None:
    from wiseale.platform.json_files import parse_table, unseal

    unseal(parse_table((left / "run" / "evaluation.json").read_text()))
    if fault := command("report", left / "run", folder=work).fault(allowed=(0,)):
        return fault
    if (left / "codes.npz").exists():
        arguments = ("decode", left / "run", left / "codes.npz", "-o", work / "x.csv")
        if fault := command(*arguments, folder=work).fault(allowed=(0,)):
            return fault
    if (left / "exported").exists():
        return command("embed", left / "exported", subjects.table, "-o", work / "x.csv", folder=work).fault((0,))
    return None


SCENARIOS = {
    "run": Scenario(lambda subjects, folder: None, _train, _judge_run),
    "model": Scenario(_two_models, _replace_model, _judge_model),
    "pack": Scenario(lambda subjects, folder: None, _pack, _judge_pack),
    "pack again": Scenario(_old_pack, _pack, _judge_pack),
    "results": Scenario(_old_results, _write_results, _judge_results),
}


def make_states(subjects: Subjects) -> list[tuple[str, Path]]:
    """Every state of every scenario, recorded on the first call."""
    found = []
    for name in SCENARIOS:
        kept = subjects.folder / "power loss" / name
        if not kept.exists():
            record_states(subjects, name, kept)
        found += [(name, path) for path in sorted(kept.iterdir())]
    return found


def record_states(subjects: Subjects, name: str, kept: Path) -> None:
    """Write every state that a loss of power may leave of a scenario, each as a folder, under ``kept``."""
    work, new = subjects.folder / "power loss.work", kept.with_name(f"{name}.new")
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(new, ignore_errors=True)
    work.mkdir()
    new.mkdir(parents=True)
    seen: set[str] = set()

    def keep(tree: Tree) -> None:
        parts = [
            f"{path}\0{'' if inside is None else hashlib.sha1(inside).hexdigest()}" for path, inside in tree.items()
        ]
        digest = hashlib.sha1("\n".join(sorted(parts)).encode()).hexdigest()
        if digest not in seen:
            seen.add(digest)
            trees.append(tree)

    trees: list[Tree] = []

    def write() -> None:
        SCENARIOS[name].begin(subjects, work)
        record(work, keep)
        SCENARIOS[name].write(subjects, work)
        for number, tree in enumerate(trees):
            _lay_out(tree, new / f"{number:05d}")

    ending = forked(write, subjects.folder, seconds=600)
    if ending.code != 0:
        raise RuntimeError(f"{name}: {ending}")
    new.rename(kept)


def _lay_out(tree: Tree, folder: Path) -> None:
    from io import FileIO

    os.makedirs(folder)
    for path, inside in sorted(tree.items()):
        if inside is None:
            os.makedirs(folder / path, exist_ok=True)
        else:
            with FileIO(folder / path, "w") as file:
                file.write(inside)


def trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """One of the recorded states: the next command works, with the previous or the new state."""
    states = make_states(subjects)
    name, path = states[draws.number % len(states)]
    left = subjects.copy(path, folder / "left")
    (folder / "work").mkdir()
    problem = SCENARIOS[name].judge(subjects, left, folder / "work")
    return f"{name}, state {path.name}: {problem}" if problem else None

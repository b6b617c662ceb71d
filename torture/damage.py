"""Damaged files of every kind: a command refuses them in one line, or works around them with the right result."""

from __future__ import annotations

import os
import random
from pathlib import Path

from torture.attempts import Draws, command
from torture.subjects import Subjects, content, difference


def damage(path: Path, draws: random.Random) -> str:
    """Damage a file in one of many ways, and say how."""
    data = bytearray(path.read_bytes())
    place = draws.randrange(max(1, len(data)))
    how = draws.choice(
        ("bit", "bit", "bit", "byte", "cut", "cut", "hole", "insert", "empty", "gone", "pipe", "folder", "noise")
    )
    if how in ("gone", "pipe", "folder"):
        path.unlink()
        if how == "pipe":
            os.mkfifo(path)
        elif how == "folder":
            path.mkdir()
        return how
    if how == "bit" and data:
        data[place] ^= 1 << draws.randrange(8)
    elif how == "byte" and data:
        data[place] = draws.choice(b'0123456789{}[]",:\x00\n')
    elif how == "cut":
        del data[place:]
    elif how == "hole":
        length = min(len(data) - place, draws.choice((1, 16, 512, 4096)))
        data[place : place + length] = bytes(length)
    elif how == "insert":
        data[place:place] = draws.randbytes(draws.choice((1, 7, 64)))
    elif how == "empty":
        data.clear()
    elif how == "noise":
        data = bytearray(draws.randbytes(len(data)))
    path.write_bytes(data)
    return f"{how} at {place}"


def run_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A damaged file of an interrupted run: `resume` refuses it, or ends with the bytes of a whole one."""
    run = subjects.copy(subjects.interrupted, folder / "run")
    path = draws.choice([path for path in sorted(run.rglob("*")) if path.is_file()])
    how = f"{path.relative_to(run)}: {damage(path, draws)}"
    ending = command("resume", run, folder=folder)
    if fault := ending.fault():
        return f"resume, {how}: {fault}"
    skipped = ("environment.json", "timing.jsonl")  # they tell of the machine and of times, not of the result
    skipped += ("config.json",) if "has been edited" in ending.out else ()  # it was said aloud
    found, whole = ({k: v for k, v in content(one).items() if k not in skipped} for one in (run, subjects.run))
    problem = difference(found, whole) if ending.code == 0 else None
    return f"resume, {how}: {problem}" if problem else None


def finished_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A damaged file of a finished run: every command refuses it, or does not depend on it."""
    run = subjects.copy(subjects.run, folder / "run")
    files = [path for path in sorted(run.rglob("*")) if path.is_file() and "checkpoints" not in path.parts]
    path = draws.choice(files)
    how = f"{path.relative_to(run)}: {damage(path, draws)}"
    name = draws.choice(("embed", "report", "evaluate", "export"))
    out = {
        "embed": folder / "codes.csv",
        "evaluate": run / "evaluation.json",
        "report": run / "tables" / "all_measures.csv",
    }
    arguments = {
        "embed": ("embed", run, subjects.table, "-o", out["embed"]),
        "report": ("report", run),
        "evaluate": ("evaluate", run),
        "export": ("export", run, "--format", "model", "-o", folder / "model"),
    }[name]
    ending = command(*arguments, folder=folder)
    if fault := ending.fault():
        return f"{name}, {how}: {fault}"
    if ending.code == 0 and name in out:
        reference = subjects.folder / "reference" / out[name].name
        if not out[name].exists():
            return f"{name}, {how}: no result"
        if reference.exists() and _result(out[name]) != _result(reference):
            return f"{name}, {how}: another result than from whole files"
    return None


def _result(path: Path) -> list[bytes]:
    """The lines of a result; times tell of the machine, and a report without ``timing.jsonl`` leaves them out."""
    return [line for line in path.read_bytes().splitlines() if b"seconds_per_thousand_rows" not in line]


def make_references(subjects: Subjects) -> None:
    """The results of whole files, to compare with."""
    folder = subjects.folder / "reference"
    if folder.exists():
        return
    work = subjects.folder / "reference.new"
    run = subjects.copy(subjects.run, work / "run")
    command("embed", run, subjects.table, "-o", work / "codes.csv", folder=work)
    command("embed", run, subjects.table, "-o", work / "codes.npz", folder=work)
    command("report", run, folder=work)
    for path in (run / "evaluation.json", run / "tables" / "all_measures.csv"):
        path.rename(work / path.name)
    work.rename(folder)


def pack_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A damaged pack: the dataset is packed again with the same fingerprint, or refused."""
    cache = subjects.copy(subjects.cache, folder / "cache")
    path = draws.choice([path for path in sorted((cache / "packs").rglob("*")) if path.is_file()])
    how = f"{path.relative_to(cache)}: {damage(path, draws)}"
    arguments = ("data", "info", f"{subjects.images}:size=16", "-o", folder / "x.png")
    ending = command(*arguments, folder=folder, prepare=lambda: os.environ.update(WISEALE_CACHE=str(cache)))
    if fault := ending.fault():
        return f"data info, {how}: {fault}"
    whole = command(*arguments, folder=folder)
    told, expected = ([line for line in text.splitlines() if "picture" not in line] for text in (ending.out, whole.out))
    return f"data info, {how}: told {told}" if ending.code == 0 and told != expected else None

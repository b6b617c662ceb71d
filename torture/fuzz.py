"""``python -m torture.fuzz [--minutes M] [TARGET ...]``: files and settings that a coverage-guided fuzzer makes up.

The other trials draw from lists of what is known to hurt; atheris (the extra ``[fuzz]``; Linux, macOS) watches which
lines of wiseale an input reaches and changes those that reach new ones. Each reader may accept its input or refuse it
with an error for the user; anything else is kept as ``FOLDER/TARGET/fault-*`` with its traceback, and read again by
``--input``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import io
import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_LONGEST_BYTES = 4096


@dataclass(frozen=True)
class Target:
    """A reader of bytes that may come from anywhere, what is imported for it, and accepted inputs to begin with."""

    read: Callable[[bytes, Path], object]
    module: str
    seeds: Callable[[Path], Sequence[bytes]]


def _file(name: str, data: bytes, folder: Path) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _settings_in(name: str) -> Callable[[bytes, Path], object]:
    """A reader of settings in a file of this name."""

    def read(data: bytes, folder: Path) -> object:
        from wiseale.config import TrainConfig, from_values, read_file

        return from_values(TrainConfig, read_file(_file(name, data, folder)))

    return read


def _rows_in(name: str) -> Callable[[bytes, Path], object]:
    """A reader of data in a file of this name."""

    def read(data: bytes, folder: Path) -> object:
        from wiseale.data.source import load_path

        return load_path(str(_file(name, data, folder)))

    return read


def _specs(data: bytes, folder: Path) -> object:
    from wiseale.config import build

    kinds = ("objective", "network", "likelihood", "dataset", "lr schedule")
    text = data[1:].decode(errors="replace")
    return build(kinds[data[0] % len(kinds)] if data else kinds[0], text)


def _csv_settings(data: bytes, folder: Path) -> object:
    from wiseale.data.source import load_path

    rows = _file("fixed.csv", b"a,b,c\n" + b"1,x,2020-01-01\n2,y,\n3,x,5\n,z,1\n" * 4, folder)
    return load_path(f"{rows}:{data.decode(errors='replace')}")


def _idx(data: bytes, folder: Path) -> object:
    from wiseale.data.sets.mnist import read_idx

    return read_idx(_file("digits-idx3-ubyte", data, folder), 3)


def _pack(data: bytes, folder: Path) -> object:
    from wiseale.data.images.pack import Manifest

    _file("manifest.json", data, folder)
    return Manifest.read(folder)


def _model(data: bytes, folder: Path) -> object:
    """``config.json``, header and numbers of the weights, with checksums that are right."""
    from wiseale.models.model_file import load_model

    config, _, rest = data.partition(b"\0")
    header, _, numbers = rest.partition(b"\0")
    model = folder / "model"
    model.mkdir(exist_ok=True)
    files = {"config.json": config, "model.safetensors": len(header).to_bytes(8, "little") + header + numbers}
    for name, content in files.items():
        (model / name).write_bytes(content)
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    (model / "manifest.json").write_text(json.dumps({"sha256": sums}))
    return load_model(model)


def _records(data: bytes, folder: Path) -> object:
    """The files of a run directory but its weights."""
    from wiseale.runs.directory import RunDirectory

    config, _, rest = data.partition(b"\0")
    environment, _, metrics = rest.partition(b"\0")
    for name, content in (("config.json", config), ("environment.json", environment), ("metrics.jsonl", metrics)):
        (folder / name).write_bytes(content)
    run = RunDirectory(folder)
    return run.read_metrics(), run.read_record(), run.read_environment()


def _kinds(data: bytes, folder: Path) -> object:
    from wiseale.data.tables.kinds import parse_kinds

    return parse_kinds(data.decode(errors="replace"))


def _given(*texts: bytes) -> Callable[[Path], Sequence[bytes]]:
    return lambda folder: texts


def _trained(folder: Path) -> Path:
    """A finished run on a small table."""
    from wiseale.cli import main

    rows, run = _file("small.csv", b"a,b\n" + b"1,2\n3,5\n4,4\n" * 4, folder), folder / "run"
    options = ("--network", "mlp:hidden=2", "--latent-dim", "1", "--max-epochs", "1", "--no-figures", "--out", str(run))
    if not (run / "model").exists():
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
            main(["train", str(rows), *options])
    return run


def _model_seeds(folder: Path) -> Sequence[bytes]:
    model = _trained(folder) / "model"
    weights = (model / "model.safetensors").read_bytes()
    end = 8 + int.from_bytes(weights[:8], "little")
    return [b"\0".join(((model / "config.json").read_bytes(), weights[8:end], weights[end:]))]


def _record_seeds(folder: Path) -> Sequence[bytes]:
    run = _trained(folder)
    return [b"\0".join((run / name).read_bytes() for name in ("config.json", "environment.json", "metrics.jsonl"))]


def _pack_seeds(folder: Path) -> Sequence[bytes]:
    from wiseale.data.images.pack import MANIFEST, Manifest

    Manifest((4, 1, 2, 2), "source", "0" * 64, "1" * 64, {"skipped": []}).write(folder)
    return [(folder / MANIFEST).read_bytes()]


def _npy_seeds(folder: Path) -> Sequence[bytes]:
    import numpy as np

    np.save(folder / "rows.npy", np.ones((6, 2), np.float32))
    return [(folder / "rows.npy").read_bytes()]


def _npz_seeds(folder: Path) -> Sequence[bytes]:
    import numpy as np

    np.savez(folder / "rows.npz", x=np.ones((6, 2), np.float32))
    return [(folder / "rows.npz").read_bytes()]


TARGETS = {
    "settings": Target(
        _settings_in("settings.json"),
        "wiseale.config",
        _given(b'{"data": "sine:n=50", "lr": 0.001, "patience": "auto"}'),
    ),
    "toml": Target(
        _settings_in("settings.toml"),
        "wiseale.config",
        _given(b'data = "sine:n=50"\nlr = 1e-3\nthreads = "auto"\n'),
    ),
    "specs": Target(
        _specs,
        "wiseale.objectives",
        _given(
            *(b"\0wise_ale:prior_weight=2,estimator=mc", b"\1mlp:hidden=8,8"),
            *(b"\2gaussian:x_sigma=0.1", b"\3sine:n=50", b"\4cosine:final=0.1"),
        ),
    ),
    "csv": Target(
        _rows_in("rows.csv"),
        "wiseale.data.tables.csv_table",
        _given(
            *(b"a,b,c\n" + b"1,2.5,x\n3,,y\n" * 5, b"x;y\n" + b"1;2\n3;4\n" * 5),
            *(b"\xef\xbb\xbfa\tb\n" + b"1\t2\n" * 9, b'"a","b"\n' + b'"1","2"\n' * 9),
        ),
    ),
    "csv settings": Target(
        _csv_settings,
        "wiseale.data.tables.csv_table",
        _given(b"columns=a,b", b"kinds=a:count,b:category,c:ignore,missing=learn", b"labels=b,drop=c,unseen=other"),
    ),
    "kinds": Target(_kinds, "wiseale.data.tables.kinds", _given(b"price:number,colour:category,id:ignore,a*:count")),
    "npy": Target(_rows_in("rows.npy"), "wiseale.data.arrays", _npy_seeds),
    "npz": Target(_rows_in("rows.npz"), "wiseale.data.arrays", _npz_seeds),
    "idx": Target(_idx, "wiseale.data.sets.mnist", _given(b"\0\0\10\3" + b"\0\0\0\2" * 3 + bytes(8))),
    "pack": Target(_pack, "wiseale.data.images.pack", _pack_seeds),
    "model": Target(_model, "wiseale.models.model_file", _model_seeds),
    "records": Target(_records, "wiseale.runs.directory", _record_seeds),
}


def main() -> int:
    """Fuzz each target in a process of its own, for the same time, and print how many inputs were read and failed."""
    parser = argparse.ArgumentParser(prog="torture.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"some of: {', '.join(TARGETS)} [all]")
    parser.add_argument("--minutes", type=float, default=12.0, help="time for all targets together [12]")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "wiseale-fuzz")
    parser.add_argument("--input", type=Path, help="read this one input by the target and show what happens")
    asked = parser.parse_args()
    if unknown := set(asked.targets) - set(TARGETS):
        parser.error(f"unknown target {min(unknown)!r} (known: {', '.join(TARGETS)})")
    names = asked.targets or list(TARGETS)
    if asked.input:
        asked.folder.mkdir(parents=True, exist_ok=True)
        print(TARGETS[names[0]].read(asked.input.read_bytes(), asked.folder))
        return 0
    faults = 0
    for name in names:
        folder = asked.folder.absolute() / name.replace(" ", "-")
        seconds = max(1, round(60 * asked.minutes / len(names)))
        words = [sys.executable, "-c", f"from torture.fuzz import fuzz; fuzz({name!r}, {str(folder)!r}, {seconds})"]
        ended = subprocess.run(words, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
        done = re.search(r"Done (\d+) runs", ended.stderr)
        if not done:  # a crash of the interpreter, a hang or too much memory: the fuzzer keeps the input itself
            print(f"{name}: the process ended: {ended.stderr[-1500:]}")
        found = sorted(folder.glob("fault-*.txt"))
        for path in found:
            print(f"{name}: {path}: {path.read_text().splitlines()[-1]}")
        faults += len(found) + (done is None)
        print(f"{name:14}{done[1] if done else '-':>10} inputs, {len(found)} faults", flush=True)
    return 1 if faults else 0


def fuzz(name: str, folder: str, seconds: int) -> None:
    """Fuzz one target; does not return."""
    import atheris  # type: ignore[import-not-found, unused-ignore]

    with atheris.instrument_imports(include=["wiseale"]):
        importlib.import_module(TARGETS[name].module)
    kept, work = Path(folder), Path(folder) / "work"
    for path in (kept / "corpus", work):
        path.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds(work)):
        (kept / "corpus" / f"seed-{number}").write_bytes(seed)

    def one_input(data: bytes) -> None:
        if trace := unexpected(TARGETS[name].read, data, work):
            places = "".join(re.findall(r'File "(?:[^"]*/)?([^"/]*", line \d+)', trace))
            place = hashlib.sha256(places.encode()).hexdigest()[:8]
            if not (kept / f"fault-{place}.txt").exists():
                (kept / f"fault-{place}").write_bytes(data)
                (kept / f"fault-{place}.txt").write_text(trace)

    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=4096", f"-max_len={_LONGEST_BYTES}"]
    atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={kept}/", str(kept / "corpus")], one_input)
    atheris.Fuzz()


def unexpected(read: Callable[[bytes, Path], object], data: bytes, folder: Path) -> str | None:
    """The traceback of an error that is not one for the user; None where the input was read, or refused in a line."""
    from wiseale.cli.faults import fault_in_words
    from wiseale.errors import WiseAleError

    try:
        read(data, folder)
    except WiseAleError:
        return None
    except Exception as error:
        return None if fault_in_words(error) else traceback.format_exc()
    return None


if __name__ == "__main__":
    sys.exit(main())

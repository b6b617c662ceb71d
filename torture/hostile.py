"""Hostile models, settings and data files: each is refused in one line, within limits of time and memory."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from torture.attempts import Draws, command
from torture.subjects import TRAIN, Subjects

_SECONDS, _GIGABYTES = 30.0, 3.0
_SETTINGS_SECONDS = 15.0  # many of these settings train for as long as they are allowed to

_NASTY: tuple[Any, ...] = (
    *(None, True, False, 0, -1, -5, 3.7, 1, 2, 7, 10**6, 10**9, 10**12, 10**30, -(10**30), 1e308, 5e-324),
    *(
        "",
        "x",
        "mlp",
        "../../etc/passwd",
        "\x1b[31mred",
        "mlp:hidden=1000000000",
        "mlp:hidden=" + "9" * 400,
        "a" * 50_000,
    ),
    *([], {}, [[]], [1, 2, 3], ["a"], {"a": 1}, [10**9, 10**9], [0], [-1], "mlp:hidden=" + ",".join(["8"] * 2000)),
    *(
        "conv2d:channels=1000000",
        "gaussian:x_sigma=1e-300",
        "gaussian:x_sigma=nan",
        "bernoulli",
        "gmvae:clusters=10000000",
    ),
)


def nasty(draws: random.Random) -> Any:
    """A value that a careless reader trips over."""
    return draws.choice(_NASTY)


def model_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """A forged model whose checksums are right."""
    model = subjects.copy(subjects.run / "model", folder / "model")
    settings = json.loads((model / "config.json").read_text())
    for _ in range(draws.choice((1, 1, 2))):
        settings[draws.choice([*settings, "surprise"])] = nasty(draws)
    text, weights = json.dumps(settings), (model / "model.safetensors").read_bytes()
    kind = draws.random()
    if kind < 0.1:
        text = "[" * 10 ** draws.randrange(1, 7)
    elif kind < 0.4:
        text, weights = (model / "config.json").read_text(), _forge_weights(weights, draws)
    (model / "config.json").write_text(text)
    (model / "model.safetensors").write_bytes(weights)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in model.iterdir()}
    manifest: Any = {"sha256": {name: sums[name] for name in ("config.json", "model.safetensors")}}
    if draws.random() < 0.1:
        manifest = draws.choice(({}, [], {"sha256": {}}, {"sha256": []}, {"sha256": {"config.json": 1}}, nasty(draws)))
    (model / "manifest.json").write_text(json.dumps(manifest))
    codes = folder / "codes.csv"
    ending = command(
        *("embed", model, subjects.table, "-o", codes), folder=folder, seconds=_SECONDS, gigabytes=_GIGABYTES
    )
    if fault := ending.fault():
        return f"embed with {text[:300]}: {fault}"
    return "NaN codes" if ending.code == 0 and "nan" in codes.read_text() else None


def _forge_weights(data: bytes, draws: random.Random) -> bytes:
    length = int.from_bytes(data[:8], "little")
    header, numbers = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    name = draws.choice(sorted(set(header) - {"__metadata__"}))
    how = draws.choice(("nan", "shape", "dtype", "offsets", "gone", "length", "cut", "name"))
    if how == "nan":
        start = header[name]["data_offsets"][0]
        numbers[start : start + 4] = np.float32(draws.choice((np.nan, np.inf))).tobytes()
    elif how in ("shape", "dtype", "offsets"):
        header[name][{"offsets": "data_offsets"}.get(how, how)] = nasty(draws)
    elif how == "gone":
        del header[name]
    elif how == "cut":
        del numbers[draws.randrange(len(numbers)) :]
    elif how == "name":
        header[str(nasty(draws))[:1000]] = header.pop(name)
    text = json.dumps(header).encode()
    size = draws.choice((0, 1 << 40, (1 << 64) - 1)) if how == "length" else len(text)
    return size.to_bytes(8, "little") + text + bytes(numbers)


_OPTIONS = (
    *(
        "latent-dim",
        "network",
        "likelihood",
        "batch-size",
        "max-epochs",
        "lr",
        "lr-schedule",
        "prior-warmup",
        "patience",
    ),
    *("held-out", "init-from", "seed", "threads", "device", "precision", "data-root", "checkpoint-every", "objective"),
)


def settings_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """Hostile options, or a hostile file of settings."""
    given = {name: nasty(draws) for name in draws.sample(_OPTIONS, draws.choice((1, 1, 2)))}
    if draws.random() < 0.5:
        words = [word for name, value in given.items() for word in (f"--{name}", _word(value))]
    else:
        path = folder / "settings.json"
        path.write_text(draws.choice((json.dumps(given), json.dumps(nasty(draws)), '{"lr":' + "[" * 200_000)))
        words = ["--config", str(path)]
    data = draws.choice((subjects.table, subjects.table, "sine:n=50,n_test=5", f"sine:n={_word(nasty(draws))[:300]}"))
    length = [] if "max-epochs" in given else ["--max-epochs", "1"]
    ending = command(
        *("train", data, *words, *length, "--out", folder / "run"),
        folder=folder,
        seconds=_SETTINGS_SECONDS,
        gigabytes=_GIGABYTES,
    )
    if ending.code is None and "rows to train on" in ending.out:
        return None  # it trains, only for longer than a trial lasts: as many rows and epochs as were asked for
    fault = ending.fault()
    return f"train {data} {str(words)[:300]}: {fault}" if fault else None


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.replace("\0", "")


def data_trial(subjects: Subjects, draws: Draws, folder: Path) -> str | None:
    """Hostile tables and arrays."""
    suffix = draws.choice((".csv", ".csv", ".npy", ".npz", ".zip", ".parquet"))
    path = folder / f"data{suffix}"
    path.write_bytes(_data(suffix, draws))
    arguments = draws.choice(
        (("train", path, *TRAIN, "--out", folder / "run"), ("data", "info", path, "-o", folder / "x.png"))
    )
    ending = command(*arguments, folder=folder, seconds=_SECONDS, gigabytes=_GIGABYTES)
    if "\x1b" in ending.out + ending.err:
        return f"{suffix}: an escape sequence reached the terminal"
    fault = ending.fault()
    return f"{arguments[0]} of {path.read_bytes()[:200]!r}: {fault}" if fault else None


def _data(suffix: str, draws: random.Random) -> bytes:
    if suffix == ".csv":
        cells = (
            "1",
            "2.5",
            "-3e300",
            "1e-320",
            "nan",
            "inf",
            "",
            "x",
            '"',
            "\x1b[2J",
            "9" * 500,
            "0",
            "1",
            "2",
            "3",
            "4",
        )
        wild = draws.random() < 0.5
        rows = [
            [draws.choice(cells if wild else cells[-5:]) for _ in range(3)] for _ in range(draws.choice((1, 2, 9, 40)))
        ]
        head = draws.choice(("a,b,c\n", "\x1b[31ma,b,c\n", "a,a,c\n", "", "a\n", "\ufeffa;b;c\n", "," * 300_000 + "\n"))
        return (head + "\n".join(",".join(row) for row in rows)).encode() + draws.choice((b"", b"\0", b"\xff\xfe"))
    if suffix == ".parquet":
        return b"PAR1" + draws.randbytes(draws.randrange(200)) + b"PAR1"
    array = io.BytesIO()
    np.save(array, np.zeros((20, 3), draws.choice(("f4", "f8", "u1", "i8", "c8", "U3"))))
    data = bytearray(array.getvalue())
    for _ in range(draws.choice((0, 1, 3))):
        data[draws.randrange(min(len(data), 128))] = draws.choice(b"0123456789()<>{}',:fO|")
    if suffix == ".npy":
        return bytes(data)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(draws.choice(("x.npy", "../x.npy", "x.png")), bytes(data))
    data = bytearray(packed.getvalue())
    for _ in range(draws.choice((0, 1, 4))):
        data[draws.randrange(len(data))] = draws.randrange(256)
    return bytes(data)

"""Digests of what fixed seeds give: codes, reconstructions, samples, scores and filled cells of small models.

``python -m bench.references`` compares them with those kept in ``bench/results/references.json``, which were measured
on the commit named there; ``--keep`` replaces them. They hold on one kind of machine and for one version of torch.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn import datasets

from wiseale import AutoEncoder, load
from wiseale.objectives import objective_names

KEPT = Path(__file__).parent / "results" / "references.json"


def digest(value: Any) -> str:
    """SHA-256 of an array's or frame's content, shortened."""
    if isinstance(value, pd.DataFrame):
        return hashlib.sha256(value.to_csv().encode()).hexdigest()[:16]
    array = np.ascontiguousarray(value)
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()[:16]


def answers(model: AutoEncoder, x: Any) -> dict[str, str]:
    """Digests of everything a model says of some rows."""
    codes = model.transform(x)
    values = {
        "codes": codes,
        "x_hat": model.inverse_transform(codes[:50]),
        "samples": model.sample(20),
        "error": model.reconstruction_error(x),
    }
    if hasattr(model, "score_samples"):
        values["score"] = model.score_samples(x)
    if isinstance(x, pd.DataFrame):
        values["filled"] = model.impute(x)
    return {name: digest(value) for name, value in values.items()}


def mixed_rows(n: int = 300) -> pd.DataFrame:
    """Numbers, words, counts, two-valued and missing cells."""
    draws = np.random.default_rng(0)
    size = draws.normal(size=n)
    frame = pd.DataFrame(
        {
            "mass": 1000 + 50 * size + draws.normal(size=n),
            "length": np.exp(size / 3),
            "colour": np.array(["red", "green", "blue"])[np.clip((size + 1.5).astype(int), 0, 2)],
            "visits": draws.poisson(np.exp(size)),
            "sold": size + draws.normal(size=n) > 0,
        }
    )
    return frame.mask(draws.random(frame.shape) < 0.1)


def fitted(x: Any, **settings: Any) -> dict[str, str]:
    """The answers of an estimator after a few epochs."""
    settings = {"latent_dim": 2, "max_epochs": 3, "random_state": 0} | settings
    return answers(AutoEncoder(**settings).fit(x), x)


def run(data: str, *options: str) -> dict[str, str]:
    """The answers of a run of ``wiseale train``, with the paper's network and kernels."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "wiseale", "train", data, "--threads", "1", "--out", str(out), *options]
        subprocess.run(command, check=True, capture_output=True)
        model = load(out)
        draws = np.random.default_rng(0)
        return answers(model, draws.random((64, *model.x_shape_)).round().astype(np.float32))


def cases() -> dict[str, Callable[[], dict[str, str]]]:
    """The small trainings by name."""
    table = datasets.load_breast_cancer().data
    digits = datasets.load_digits().images[:400, None]
    bytes_ = (digits * 15).astype(np.uint8)
    waves = np.sin(np.linspace(0, 6, 32) * np.random.default_rng(1).uniform(1, 4, (300, 1)))[:, None]
    faces = np.random.default_rng(2).random((64, 3, 64, 64)).astype(np.float32)
    known = {
        f"table, {name}": lambda name=name: fitted(table, objective=name, max_epochs=2) for name in objective_names()
    }
    known |= {
        f"table, wise_ale {estimator}": lambda estimator=estimator: fitted(
            table, objective=f"wise_ale:estimator={estimator},prior_weight=4", max_epochs=2
        )
        for estimator in ("bhattacharyya", "tightest", "mc")
    }
    return known | {
        "table, auto": lambda: fitted(table, max_epochs="auto", latent_dim=4),
        "table, batches of 256": lambda: fitted(table, batch_size=256),
        "mixed": lambda: fitted(mixed_rows(), max_epochs=10),
        "mixed, auto": lambda: fitted(mixed_rows(), max_epochs="auto"),
        "mixed, gmvae": lambda: fitted(mixed_rows(), objective="gmvae"),
        "signals": lambda: fitted(waves),
        "signals, conv1d": lambda: fitted(waves, network="conv1d"),
        "images": lambda: fitted(digits),
        "images, bytes": lambda: fitted(bytes_),
        "images, conv2d": lambda: fitted(bytes_, network="conv2d"),
        "images, binary": lambda: fitted((digits > 8).astype(np.float64)),
        "faces, paper_celeba": lambda: fitted(faces, network="paper_celeba:width=0.125", latent_dim=8, batch_size=32),
        "sine": lambda: run("sine:n=4000", "--max-epochs", "2"),
        "sine, aevb": lambda: run("sine:n=4000", "--max-epochs", "1", "--objective", "aevb"),
        "sine, wae_gan": lambda: run("sine:n=1000", "--max-epochs", "1", "--objective", "wae_gan"),
        "mnist": lambda: run("mnist", "--max-epochs", "1"),
        "sine, 2 processes": lambda: run("sine:n=1000", "--max-epochs", "1", "--processes", "2"),
    }


def machine() -> dict[str, str]:
    """What the digests depend on beside the code."""
    return {
        "torch": str(torch.__version__),
        "machine": platform.machine(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
    }


def main() -> int:
    """Compare with the kept digests; 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m bench.references")
    parser.add_argument("--keep", metavar="COMMIT", help="replace the kept digests by those of this commit")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {"machine": machine(), "digests": {}}
    if not arguments.keep and kept["machine"] != machine():
        print(f"kept on {kept['machine']}, this is {machine()}: not comparable")
        return 0
    digests, different = {}, []
    for name, case in cases().items():
        if arguments.only not in name:
            continue
        digests[name] = case()
        before = kept["digests"].get(name, {})
        changed = [key for key in digests[name] if before.get(key) != digests[name][key]]
        if changed and not arguments.keep:
            different.append(name)
        print(f"{name}: {'other ' + ', '.join(changed) if changed else 'same'}", flush=True)
    if arguments.keep:
        record = {"commit": arguments.keep, "machine": machine(), "digests": digests}
        KEPT.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{len(digests) - len(different)} of {len(digests)} cases are the same")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())

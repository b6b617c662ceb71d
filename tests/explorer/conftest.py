"""Tiny trained runs for the explorer: images with labels (d_z = 2), signals (d_z = 4), tables (d_z = 2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.explorer.browser import MISSING, chromium

from wiseale.cli import main
from wiseale.explorer.opening import choose_rows, open_models
from wiseale.explorer.session import Session, make_session


def train(data: str, out: Path, *options: str) -> Path:
    """One finished run."""
    with pytest.raises(SystemExit) as ended:
        main(["train", data, "--out", str(out), "--max-epochs", "3", "--threads", "1", "--no-figures", *options])
    assert ended.value.code == 0
    return out


def open_session(*paths: Path, data: str | None = None, most: int = 50_000) -> Session:
    """The session that `wiseale explore` would serve."""
    models = open_models(paths)
    return make_session(models, choose_rows(models, data, most=most))


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("explorer")


@pytest.fixture(scope="session")
def image_data(folder) -> str:
    """600 images of a bright square, 12 by 12 pixels, labelled by the quarter it lies in."""
    draws = np.random.default_rng(0)
    images = np.zeros((600, 1, 12, 12), np.uint8)
    place = draws.integers(0, 8, (600, 2))
    for image, (row, column) in zip(images[:, 0], place, strict=True):
        image[row : row + 4, column : column + 4] = 200
    images += draws.integers(0, 40, images.shape).astype(np.uint8)
    np.savez(folder / "squares.npz", x=images, quarter=(place[:, 0] // 4) * 2 + place[:, 1] // 4)
    return f"{folder / 'squares.npz'}:array=x,labels=quarter"


@pytest.fixture(scope="session")
def image_run(folder, image_data) -> Path:
    return train(image_data, folder / "squares", "--latent-dim", "2", "--network", "mlp")


@pytest.fixture(scope="session")
def other_run(folder, image_data) -> Path:
    return train(image_data, folder / "other", "--latent-dim", "2", "--network", "mlp", "--objective", "aevb")


@pytest.fixture(scope="session")
def signal_run(folder) -> Path:
    return train("sine:n=400", folder / "waves", "--latent-dim", "4")


@pytest.fixture(scope="session")
def table_run(folder) -> Path:
    draws = np.random.default_rng(1)
    base = draws.normal(size=400)
    lines = ["price,quantity,region"]
    lines += [f"{40 + 9 * b:.3f},{200 - 20 * b:.1f},{'north' if b > 0 else 'south'}" for b in base]
    (folder / "sales.csv").write_text("\n".join(lines) + "\n")
    return train(f"{folder / 'sales.csv'}:labels=region", folder / "sales", "--latent-dim", "2")


@pytest.fixture(scope="session")
def image_session(image_run) -> Session:
    return open_session(image_run)


@pytest.fixture(scope="session")
def mixed_run(folder) -> Path:
    """Words, whole numbers, counts and two columns with holes, all of which follow one number between -1 and 1."""
    draws = np.random.default_rng(2)
    lines = ["species,mass,visits,sex,length"]
    for row, t in enumerate(draws.uniform(-1, 1, 400)):
        species = "Adelie" if t < -0.3 else "Gentoo" if t > 0.4 else "Chinstrap"
        mass = "" if row % 9 == 0 else f"{4200 + 900 * t + 60 * draws.normal():.0f}"
        sex = "" if row % 7 == 0 else "male" if t + 0.3 * draws.normal() > 0 else "female"
        lines.append(f"{species},{mass},{draws.poisson(np.exp(1.2 + t))},{sex},{40 + 5 * t + draws.normal():.2f}")
    (folder / "birds.csv").write_text("\n".join(lines) + "\n")
    return train(str(folder / "birds.csv"), folder / "birds", "--latent-dim", "2", "--max-epochs", "15")


@pytest.fixture(scope="session")
def mixed_session(mixed_run) -> Session:
    return open_session(mixed_run)


@pytest.fixture(scope="module")
def browser():
    """One Chromium for the tests of a file; no longer, since Playwright's event loop would stop other tests' own."""
    if MISSING:
        pytest.skip(MISSING)
    with chromium() as browser:
        yield browser

"""What can be named or read: every entry of the lists that users rely on, tried."""

import pkgutil
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from pyarrow import feather
from tests.data.image_samples import photograph

from wiseale import networks, objectives, registry
from wiseale.config import Settings
from wiseale.data import load_dataset
from wiseale.data.source import load_path, read_alike
from wiseale.errors import ConfigError

X = np.random.default_rng(0).normal(size=(12, 3))
FRAME = pd.DataFrame(X, columns=list("abc"))

WRITERS = {
    ".npy": lambda path: np.save(path, X),
    ".npz": lambda path: np.savez(path, X),
    ".csv": lambda path: FRAME.to_csv(path, index=False),
    ".tsv": lambda path: FRAME.to_csv(path, index=False, sep="\t"),
    ".parquet": FRAME.to_parquet,
    ".feather": FRAME.to_feather,
    ".arrow": lambda path: feather.write_feather(FRAME, path),
}


@pytest.mark.parametrize("suffix", [*WRITERS, ".CSV", ".Feather"])
def test_every_type_of_table_is_read(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    WRITERS[suffix.lower()](path)
    np.testing.assert_allclose(load_path(str(path)).train.x, X)


def test_every_type_of_image_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "cache"))
    suffixes = (".jpg", ".jpeg", ".JPG", ".png", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")
    folder = tmp_path / "images"
    folder.mkdir()
    for number, suffix in enumerate(suffixes):
        image = Image.fromarray(photograph(number))
        (image.convert("L") if suffix == ".pgm" else image).save(folder / f"{number}{suffix}")
    (folder / "notes.txt").write_text("no image")
    assert len(load_dataset(f"{folder}:size=16").train) == len(suffixes)


@pytest.mark.parametrize("word", ["", "-", "--", "?", ".", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan"])
@pytest.mark.parametrize("more", [("NaT", "null", "NULL", "None", "missing")])
def test_words_that_stand_for_a_missing_cell(tmp_path, word, more):
    cells = [word, *more, *map(str, range(2, 62, 2))]
    rows = "\n".join(f"{i / 7},{cell},z" for i, cell in enumerate(cells))
    (tmp_path / "x.csv").write_text(f"a,b,c\n{rows}\n")
    x = load_path(f"{tmp_path}/x.csv:kinds=b:number,c:ignore").train.x
    assert np.isnan(x[:, 1]).tolist() == [True] * 6 + [False] * 30


def test_another_file_is_read_as_the_first_was_written():
    written = "separator=semicolon,header=false,decimal=comma"
    assert read_alike("b.csv", f"a.csv:{written},drop=1") == f"b.csv:{written}"
    assert (
        read_alike("b.csv:decimal=point", f"a.csv:{written}") == "b.csv:decimal=point,separator=semicolon,header=false"
    )
    assert read_alike("b.npy", f"a.csv:{written}") == "b.npy"
    assert read_alike("b.npy", "a.npy:channels=last,array=x") == "b.npy:channels=last"


def settings_of(room):
    """The classes of settings that a room's files hold and that nothing in it is derived from."""
    modules = [import_module(module.name) for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]
    classes = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    return {cls for cls in classes if issubclass(cls, Settings) and cls.__module__.startswith(room.__name__)}


@pytest.mark.parametrize(("kind", "room"), [("objective", objectives), ("network", networks)])
def test_every_class_of_a_room_has_a_name(kind, room):
    registered = {registry.lookup(kind, name) for name in registry.names(kind)}
    bases = {cls for cls in settings_of(room) if cls.__subclasses__() or cls.__name__[0] == "_"}
    assert registered <= settings_of(room)
    assert settings_of(room) - bases <= registered


@pytest.mark.parametrize(
    ("kind", "name", "known"),
    [
        *(("objective", name, "aevb") for name in ("vae", "VAE")),
        *(("objective", name, "wae_mmd") for name in ("wae", "WAE-MMD")),
        *(("objective", name, "beta_vae") for name in ("β-VAE", "beta-vae")),
        *(("objective", name, "beta_tc_vae") for name in ("btcvae", "TC-VAE")),
        ("likelihood", "normal", "gaussian"),
        ("network", "dense", "mlp"),
    ],
)
def test_what_others_call_it_leads_to_our_name(kind, name, known):
    with pytest.raises(ConfigError, match=f"{known!r} here"):
        registry.lookup(kind, name)

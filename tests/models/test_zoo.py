"""The models that come with the package: whole, small, honest about what was measured, usable without any dataset."""

import hashlib
import json
import re

import numpy as np
import pytest
import torch
from tests.cli.commands import run

from wiseale import load
from wiseale.errors import ModelFileError
from wiseale.models.inference import open_codec
from wiseale.models.model_file import ModelConfig, load_model, read_header, save_model
from wiseale.models.places import locate, read_codes, read_entry, zoo_folder, zoo_names
from wiseale.spaces import plain_space

NAMES = zoo_names()


def test_the_zoo_fits_into_the_wheel():
    assert NAMES
    assert sum(path.stat().st_size for path in zoo_folder().rglob("*") if path.is_file()) < 5_000_000


@pytest.mark.parametrize("name", NAMES)
def test_every_model_loads_by_its_name_and_says_what_was_measured(name):
    est, path = load(f"zoo:{name}"), zoo_folder() / name
    entry = read_entry(path)
    assert entry.name == name
    dataset, _, objective = name.partition("-")
    assert est.objective_.partition(":")[0] == objective
    assert entry.dataset == dataset
    sums = json.loads((path / "manifest.json").read_text())["sha256"]
    for file in path.iterdir():  # all files but the card and the manifest are covered
        if file.name not in ("README.md", "manifest.json"):
            assert sums[file.name] == hashlib.sha256(file.read_bytes()).hexdigest()
    card, measures = (path / "README.md").read_text(), json.loads((path / "evaluation.json").read_text())["measures"]
    assert f"| mse | {measures['mse']:.6g} |" in card
    assert f'load("zoo:{name}")' in card
    assert not re.search(r"/(root|home|work|tmp)/", card)
    assert np.isfinite(est.sample(3)).all()


@pytest.mark.parametrize("name", [name for name in NAMES if not read_entry(zoo_folder() / name).shown])
def test_stored_codes_are_of_the_model_and_no_images_are_stored(name):
    path = zoo_folder() / name
    kept, codec = read_codes(path), open_codec(path)
    assert len(kept.numbers) == 1000
    assert set(kept.labels) == {"label"}
    assert kept.codes.mu.shape == (1000, codec.model.latent_dim)
    # a decoded code is encoded near itself, by a model that reconstructs: the codes are of these weights
    x = codec.decode(kept.codes.mu).clip(0, 1)
    again = codec.encode(x).mu
    assert np.corrcoef(again[:, 0], kept.codes.mu[:, 0])[0, 1] > 0.8


def test_half_precision_rounds_the_weights_and_nothing_else(tmp_path):
    config = ModelConfig("mlp:hidden=8", "gaussian", "wise_ale", plain_space((6,)), 2)
    model = config.build()
    save_model(tmp_path / "half", model, config, half=True)
    headers = read_header(tmp_path / "half" / "model.safetensors")
    assert {header.dtype for header in headers.values()} == {"F16"}
    again, read = load_model(tmp_path / "half")
    assert read == load_model(tmp_path / "half")[1]
    for name, tensor in model.state_dict().items():
        assert again.state_dict()[name].dtype == torch.float32
        assert torch.equal(again.state_dict()[name], tensor.half().float())


def test_a_name_that_is_not_in_the_zoo_is_refused_with_the_nearest():
    with pytest.raises(ModelFileError, match="no model 'mnist-wise_al': did you mean 'mnist-wise_ale'"):
        locate("zoo:mnist-wise_al")
    with pytest.raises(ModelFileError, match="the zoo has no model"):
        locate("zoo:../zoo/mnist-wise_ale")


def test_commands_take_models_of_the_zoo(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WISEALE_DATA", str(tmp_path / "nothing"))
    code, told, _ = run(capsys, "zoo")
    assert code == 0
    assert all(f"zoo:{name}" in told for name in NAMES)
    assert run(capsys, "sample", "zoo:mnist-wise_ale", "-n", 4, "-o", tmp_path / "x.npy")[0] == 0
    assert np.load(tmp_path / "x.npy").shape == (4, 1, 28, 28)


def test_the_explorer_shows_stored_codes_beside_each_other(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WISEALE_DATA", str(tmp_path / "nothing"))
    page = tmp_path / "page.html"
    code, told, _ = run(capsys, "explore", "zoo:mnist-wise_ale", "zoo:mnist-aevb", "--html", page)
    assert (code, told[:10]) == (0, "1,000 rows")
    embedded = json.loads(re.search(r'id="embedded">(.*?)</script>', page.read_text(), re.S)[1].replace("<\\/", "</"))
    manifest = embedded["manifest"]
    assert (manifest["n"], manifest["available"], manifest["originals"]) == (1000, 10_000, False)
    assert manifest["thumbnails"]["rows"] == []
    assert [entry["name"] for entry in manifest["runs"]] == ["mnist-wise_ale", "mnist-aevb"]
    measures = {entry["name"]: entry["values"] for entry in manifest["measures"]}
    assert (
        measures["mse"][0]
        == json.loads((locate("zoo:mnist-wise_ale") / "evaluation.json").read_text())["measures"]["mse"]
    )
    assert any(entry["name"] == "label" and len(entry["classes"]) == 10 for entry in manifest["colourings"])


def test_generated_datasets_are_shown_with_their_originals(tmp_path, capsys):
    page = tmp_path / "page.html"
    assert run(capsys, "explore", "zoo:sine-wise_ale", "--html", page)[0] == 0
    embedded = json.loads(re.search(r'id="embedded">(.*?)</script>', page.read_text(), re.S)[1].replace("<\\/", "</"))
    assert embedded["manifest"]["originals"] is True
    assert embedded["manifest"]["thumbnails"]["rows"]

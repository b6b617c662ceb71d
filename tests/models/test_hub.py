"""Models on the Hub, against a stand-in of its API on loopback."""

import sys

import numpy as np
import pytest
from tests.cli.commands import run
from tests.models.hub_server import hub

from wiseale import AutoEncoder, load
from wiseale.errors import WiseAleError


@pytest.fixture
def server(monkeypatch, tmp_path):
    with hub() as kept:
        monkeypatch.setenv("HF_ENDPOINT", kept.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
        yield kept


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(scope="module")
def fitted(rows):
    return AutoEncoder(network="mlp:hidden=8", max_epochs=1, random_state=0).fit(rows)


def test_what_is_pushed_is_what_is_loaded_and_stays_so(server, fitted, rows):
    place = fitted.push_to_hub("ann/waves", token="right")
    (commit, files) = server.commits["ann/waves"][-1]
    assert place == f"hf://ann/waves@{commit}"
    assert set(files) == {"README.md", "config.json", "manifest.json", "model.safetensors"}
    assert b'load("hf://ann/waves")' in files["README.md"]
    newest = load("hf://ann/waves")
    assert np.array_equal(newest.transform(rows), fitted.transform(rows))
    assert f"read from hf://ann/waves@{commit}" in repr(newest)
    other = AutoEncoder(network="mlp:hidden=8", max_epochs=1, random_state=1).fit(rows)
    other.push_to_hub("ann/waves", token="right")
    assert np.array_equal(load("hf://ann/waves").transform(rows), other.transform(rows))
    assert np.array_equal(load(place).transform(rows), fitted.transform(rows))
    before = len(server.requests)
    load(place)
    assert len(server.requests) == before  # a commit in the cache needs no network


def test_only_the_files_of_a_model_are_fetched_and_nothing_is_executed(server, fitted, tmp_path):
    place = fitted.push_to_hub("ann/waves", token="right")
    server.commit("ann/waves", {"modeling.py": b"raise SystemExit", "setup.py": b"", "weights.pkl": b"\x80"})
    load("hf://ann/waves")
    fetched = {path.rpartition("/")[2] for _, path in server.requests if "/resolve/" in path}
    assert fetched == {"manifest.json", "config.json", "model.safetensors"}
    assert place != f"hf://ann/waves@{server.commits['ann/waves'][-1][0]}"


def test_damaged_and_exchanged_files_are_refused(server, fitted):
    fitted.push_to_hub("ann/waves", token="right")
    weights = server.commits["ann/waves"][-1][1]["model.safetensors"]
    damaged = bytearray(weights)
    damaged[-1] ^= 1
    server.commit("ann/waves", {"model.safetensors": bytes(damaged)})
    with pytest.raises(WiseAleError, match=r"checksum|damaged|SHA-256"):
        load("hf://ann/waves")
    with pytest.raises(WiseAleError, match="not the model asked for"):
        load(f"hf://ann/waves@{server.commits['ann/waves'][0][0]}", sha256="0" * 64)


def test_what_goes_wrong_is_one_line(server, fitted, capsys, tmp_path, monkeypatch):
    for place in ("hf://nobody", "hf://a/b/c", "hf://a/b@", "hf://../../etc"):
        with pytest.raises(WiseAleError, match="is not of the form"):
            load(place)
    with pytest.raises(WiseAleError, match=r"hf://ann/none: not found"):
        load("hf://ann/none")
    with pytest.raises(WiseAleError, match="you must log in"):
        fitted.push_to_hub("ann/waves", token="wrong")
    with pytest.raises(WiseAleError, match="owner/name"):
        fitted.push_to_hub("waves", token="right")
    code, _, told = run(capsys, "sample", "hf://ann/none", "-n", 1, "-o", tmp_path / "x.npy")
    assert (code, told.count("\n")) == (2, 1)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(WiseAleError, match="cannot be reached"):
        load("hf://ann/waves")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(WiseAleError, match=r"pip install 'wiseale\[hub\]'"):
        load("hf://ann/waves")

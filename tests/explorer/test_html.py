"""The page as one file: modules in the order of their imports, nothing fetched, only its own script allowed."""

import base64
import hashlib
import importlib.util
import re

import numpy as np
import pytest
from tests.cli.commands import run
from tests.explorer.conftest import open_session

from wiseale.explorer.assets import SCRIPT, load_assets, one_script, read_static
from wiseale.explorer.html import page, stored_decoder


@pytest.fixture(scope="module")
def text(image_session):
    return page(image_session)


def test_nothing_is_fetched(text):
    assert not re.search(r'(?:src|href)="(?!data:|#)', text)
    assert "preload" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#x27;none&#x27;" in policy
    assert "unsafe" not in policy


def test_only_the_pages_own_script_and_style_are_allowed(text):
    allowed = re.findall(r"sha256-([\w+/=]+)", text)
    (script,) = re.findall(r'<script type="module">(.*?)</script>', text, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.S)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (script, style)]
    assert allowed == hashes


def test_every_module_comes_after_those_it_imports():
    script = load_assets()[SCRIPT]
    order = re.findall(r"^const module_(\w+) =", script, re.M)
    assert order[-1] == "main"
    current = ""
    for user, used in re.findall(r"^const module_(\w+) =|= module_(\w+);", script, re.M):
        current = user or current
        assert not used or order.index(used) < order.index(current)
    assert not re.search(r"^(import|export)\b", script, re.M)


def test_modules_that_import_each_other_are_refused():
    a, b = (f'import {{ x }} from "./{name}.js";\nexport const y = 1;\n' for name in ("b", "a"))
    with pytest.raises(ValueError, match="import each other"):
        one_script({"a.js": a, "b.js": b}, "a.js")


def test_every_module_is_used():
    used = set(re.findall(r"^const module_(\w+) =", load_assets()[SCRIPT], re.M))
    assert {f"{name}.js" for name in used} == {name for name in read_static() if name.endswith(".js")}


def test_stored_decodes_on_a_grid_are_those_of_the_model(image_session):
    shown = image_session.runs[0]
    decoder = stored_decoder(shown, image_session.observation)
    told, points = decoder.description, decoder.description["points"]
    axes = [np.linspace(a, b, points) for a, b in zip(told["from"], told["to"], strict=True)]
    stored = np.frombuffer(decoder.content, np.uint8).reshape(points, points, 12, 12)
    x = told["low"] + stored / 255 * (told["high"] - told["low"])
    for i, j in ((0, 0), (3, 7), (points - 1, 2)):
        z = np.array([[axes[0][i], axes[1][j]]], np.float32)
        assert np.abs(x[j, i] - shown.codec.decode(z)[0, 0]).max() < 0.01
    assert f"{points} × {points}" in decoder.note


def test_stored_decodes_of_rows_are_those_of_their_codes(signal_run):
    session = open_session(signal_run, most=100)
    shown = session.runs[0]
    decoder = stored_decoder(shown, session.observation)
    n = decoder.description["codes"]
    codes = np.frombuffer(decoder.content[: 4 * n], "<f4").reshape(-1, 4)
    assert (codes == shown.codes.mu).all()
    stored = np.frombuffer(decoder.content[4 * n :], np.uint8).reshape(len(codes), 1, 256)
    low, high = decoder.description["low"], decoder.description["high"]
    assert np.abs(low + stored / 255 * (high - low) - shown.codec.decode(codes)).max() <= 0.6 * (high - low) / 255


def test_the_command_writes_the_file(capsys, image_run, tmp_path):
    code, out, err = run(capsys, "explore", image_run, "--html", tmp_path / "page.html")
    assert (code, err) == (0, "")
    assert "600 rows" in out
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_without_the_server_the_extra_is_offered(capsys, monkeypatch, image_run):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: name != "uvicorn" and found(name, *more))
    code, out, err = run(capsys, "explore", image_run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "pip install 'wiseale[explore]'" in err


def test_errors_are_one_line(capsys, tmp_path):
    code, out, err = run(capsys, "explore", tmp_path / "nothing")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no model at" in err

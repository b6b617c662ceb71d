"""``wiseale info`` names what runs here."""

from importlib import metadata

import numpy
import sklearn
import torch
from tests.cli.commands import run

import wiseale


def info(capsys):
    code, out, err = run(capsys, "info")
    assert (code, err) == (0, "")
    return {line.split("  ")[0]: line.split("  ", 1)[1].strip() for line in out.splitlines()}


def test_versions_folders_and_kernels(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("WISEALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WISEALE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    found = info(capsys)
    assert found["wiseale"] == wiseale.__version__
    assert torch.__version__.partition("+")[0] == found["torch"].partition("+")[0]  # builds add "+cpu", "+cu130"
    assert found["numpy"] == numpy.__version__
    assert found["scikit-learn"] == sklearn.__version__
    assert found["cache folder"] == str(tmp_path / "cache")
    assert found["data root"] == str(tmp_path / "data")
    assert found["accelerators"].startswith("none")
    assert found["kernels"].startswith(("compiled", "not used: "))
    assert 1 <= int(found["threads"].split()[0]) <= int(found["cores"])


def test_an_optional_package_that_is_missing(capsys, monkeypatch):
    version = metadata.version

    def without_onnx(name):
        if name == "onnx":
            raise metadata.PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", without_onnx)
    assert info(capsys)["onnx"] == "not installed: pip install 'wiseale[onnx]'"

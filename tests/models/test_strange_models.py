"""Models from strangers: bounded in memory and time, refused in one line, never half used."""

import json
import os
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file

from wiseale import config, registry
from wiseale.errors import ModelFileError
from wiseale.models.model_file import ModelConfig, header_of, load_model, refuse_to_replace, save_model
from wiseale.platform.atomic_files import MANIFEST, sha256
from wiseale.spaces import Column, NumbersSpace, plain_space
from wiseale.spaces.units import Affine

SPACE = NumbersSpace((3,), scaling="columns", columns=tuple(map(Column, "abc")))
SETTINGS = ModelConfig("mlp:hidden=4", "gaussian", "wise_ale", SPACE, 2)


@pytest.fixture
def saved(tmp_path):
    model = SETTINGS.build()
    model.units = Affine(torch.zeros(3).double(), torch.ones(3).double())
    save_model(tmp_path / "model", model, SETTINGS)
    return tmp_path / "model"


def forge(directory, weights=None, **changes):
    """Change the files and make the manifest agree."""
    settings = json.loads((directory / "config.json").read_text())
    settings = {**settings, **changes, "space": settings["space"] | changes.get("space", {})}
    (directory / "config.json").write_text(json.dumps(settings))
    if weights is not None:
        save_file(weights, directory / "model.safetensors")
    names = ("config.json", "model.safetensors")
    (directory / MANIFEST).write_text(json.dumps({"sha256": {name: sha256(directory / name) for name in names}}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latent_dim": True}, "latent_dim is True"),
        ({"latent_dim": 3.7}, "latent_dim is 3.7"),
        ({"latent_dim": "2"}, "latent_dim is '2'"),
        ({"latent_dim": 10**30}, "latent_dim is 1000"),
        ({"latent_dim": 10**12}, "impossible"),
        ({"space": {"x_shape": [True]}}, "x_shape"),
        ({"space": {"x_shape": [10**10], "columns": []}}, "impossible"),
        ({"space": {"x_shape": [1, 1, 1, 1], "columns": []}}, "impossible"),
        ({"space": {"scaling": 1}}, "scaling is 1"),
        ({"space": {"columns": {"a": 1}}}, "columns"),
        ({"data_fingerprint": None}, "data_fingerprint is None"),
        ({"version": True}, "version"),
        ({"network": "mlp:hidden=" + ",".join(["8"] * 9000)}, "network is too long"),
        ({"network": "mlp:hidden=1" + "0" * 30}, "too large"),
        ({"network": "mlp:hidden=1000000000,1000000000"}, "do not fit the network|no such network"),
    ],
)
def test_impossible_settings_are_refused(saved, changes, message):
    forge(saved, **changes)
    with pytest.raises(ModelFileError, match=message) as error:
        load_model(saved)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["head.mu.bias", "units.mean"])
def test_weights_that_are_not_finite_are_refused(saved, name, value):
    weights = load_file(saved / "model.safetensors")
    weights[name][0] = value
    forge(saved, weights)
    with pytest.raises(ModelFileError, match=f"NaN or infinity in {name}"):
        load_model(saved)


def test_a_scale_of_zero_is_refused(saved):
    weights = load_file(saved / "model.safetensors")
    weights["units.scale"][1] = 0
    forge(saved, weights)
    with pytest.raises(ModelFileError, match="scale of 0"):
        load_model(saved)


def test_an_empty_manifest_is_refused(saved):
    (saved / MANIFEST).write_text('{"sha256": {}}')
    with pytest.raises(ModelFileError, match=r"does not list model.safetensors"):
        load_model(saved)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="POSIX")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", MANIFEST])
@pytest.mark.timeout(20)
def test_a_pipe_in_place_of_a_file_does_not_hang(saved, name):
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(ModelFileError, match=name):
        load_model(saved)


@pytest.mark.skipif(sys.platform != "linux", reason="limits and measures memory as Linux does")
def test_a_small_file_that_declares_a_large_network_takes_no_memory(saved):
    """A file of some kB whose network would take 32 GB: the process may take 1 GB."""
    forge(saved, network="mlp:hidden=60000,60000")
    script = (
        "import torch; from pathlib import Path; from wiseale.models.model_file import load_model\n"
        "from wiseale.errors import ModelFileError\n"
        f"try: load_model(Path({str(saved)!r}))\n"
        "except ModelFileError as error: print(error)\n"
        "status = Path('/proc/self/status').read_text()  # getrusage counts the memory of the process that forked\n"
        "print(next(line.split()[1] for line in status.splitlines() if line.startswith('VmHWM')))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    message, peak = done.stdout.splitlines()
    assert "do not fit the network" in message
    assert int(peak) * 1024 < 1 << 30


@pytest.mark.parametrize("name", registry.names("network"))
@pytest.mark.parametrize("objective", ["wise_ale", "gmvae"])
def test_headers_are_those_of_the_model_that_is_built(name, objective):
    """What a model holds is asked of the model itself, on a device without memory."""
    shape = registry.lookup("network", name).example_shape
    spec = config.spec_of("network", config.build("network", name))
    settings = ModelConfig(spec, "gaussian", objective, plain_space(shape), 3)
    model = settings.build()
    model.prior = settings.build_prior(model)
    assert settings.headers() == {key: header_of(tensor) for key, tensor in model.state_dict().items()}
    assert settings.bytes() == sum(tensor.nbytes for tensor in model.state_dict().values())


def test_weights_are_as_readable_as_the_files_beside_them(saved):
    if hasattr(os, "geteuid"):
        assert {path.name: path.stat().st_mode & 0o777 for path in saved.iterdir()} == dict.fromkeys(
            ("config.json", "manifest.json", "model.safetensors"), (saved / "config.json").stat().st_mode & 0o777
        )


def test_a_readme_of_the_user_s_own_is_not_deleted(saved):
    refuse_to_replace(saved)
    (saved / "README.md").write_text("---\nlibrary_name: wiseale\n---\n# a card\n")
    refuse_to_replace(saved)
    (saved / "README.md").write_text("# my notes\n")
    with pytest.raises(ModelFileError, match=r"holds other things \(README.md\)"):
        refuse_to_replace(saved)

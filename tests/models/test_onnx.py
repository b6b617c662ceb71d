"""ONNX files against the model, in onnxruntime; and the model card."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from wiseale import AutoEncoder, load, registry
from wiseale.cli import main
from wiseale.errors import ConfigError, ModelFileError
from wiseale.evaluation.record import provenance
from wiseale.models import onnx as export
from wiseale.models.card import Provenance, model_card
from wiseale.models.inference import Codec, open_codec
from wiseale.models.model_file import ModelConfig
from wiseale.models.onnx import OPSET, export_onnx, require_extra
from wiseale.networks.model import seeded
from wiseale.platform.atomic_files import verify_directory
from wiseale.runs.run import Run
from wiseale.spaces import plain_space
from wiseale.spaces.units import Affine

RNG = np.random.default_rng(0)
NARROW = {"channels": "8,8", "width": "0.03"}  # fewer filters, in networks that have the setting: a quicker export


def spec_and_shape(name):
    network = registry.lookup("network", name)
    fields = {field.name for field in dataclasses.fields(network)}
    settings = ",".join(f"{key}={value}" for key, value in NARROW.items() if key in fields)
    return f"{name}:{settings}" if settings else name, network.example_shape


# Besides each network's example: odd sizes, which the strides do not divide.
NETWORKS = [
    *map(spec_and_shape, registry.names("network")),
    ("conv1d:channels=8,8", (3, 77)),
    ("conv2d:channels=8,8", (3, 13, 6)),
]


def codec_of(network, shape, *, likelihood="gaussian", mean=None, scale=None, stochastic=True):
    model_config = ModelConfig(network, likelihood, "wise_ale" if stochastic else "wae_mmd", plain_space(shape), 3)
    with seeded(1):
        model = model_config.build()
    if mean is not None:
        model.units = Affine(torch.as_tensor(mean).double(), torch.as_tensor(scale).double())
    for module in model.modules():  # statistics unlike those a fresh batch norm has
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1, generator=torch.Generator().manual_seed(0))
            module.running_var.uniform_(0.5, 2, generator=torch.Generator().manual_seed(1))
    return Codec(model, model_config)


def run_onnx(path, name, values):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {name: np.asarray(values, np.float32)})


@pytest.mark.long
@pytest.mark.parametrize(("network", "shape"), NETWORKS)
def test_every_network_in_the_user_s_units(tmp_path, capfd, network, shape):
    """x has a mean of 40 and a scale of 3; batches of sizes the export never saw are compared with the codec."""
    codec = codec_of(network, shape, mean=40.0, scale=3.0)
    exported = export_onnx(codec, tmp_path / "onnx")
    assert max(exported.encoder_error, exported.decoder_error) <= 1e-5
    assert (exported.opset, exported.outputs) == (OPSET, ("mu", "sigma"))
    for size in (1, 2, 7, 12):
        x = (40 + 3 * RNG.normal(size=(size, *shape))).astype(np.float32)
        codes = codec.encode(x)
        mu, sigma = run_onnx(tmp_path / "onnx" / "encoder.onnx", "x", x)
        np.testing.assert_allclose(mu, codes.mu, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(sigma, codes.sigma, rtol=1e-5, atol=1e-5)
        (x_hat,) = run_onnx(tmp_path / "onnx" / "decoder.onnx", "z", codes.mu)
        np.testing.assert_allclose(x_hat / 3, codec.decode(codes.mu) / 3, rtol=1e-5, atol=1e-5)
    assert capfd.readouterr() == ("", "")  # the exporter is quiet
    verify_directory(tmp_path / "onnx")
    for name in ("encoder", "decoder"):
        graph = onnx.load(tmp_path / "onnx" / f"{name}.onnx")
        assert [entry.version for entry in graph.opset_import if entry.domain == ""] == [OPSET]
        assert graph.graph.input[0].type.tensor_type.shape.dim[0].dim_param  # a name: any size


def test_bernoulli_decoders_return_probabilities(tmp_path):
    codec = codec_of("mlp:hidden=8", (5,), likelihood="bernoulli")
    export_onnx(codec, tmp_path / "onnx")
    z = RNG.normal(size=(50, 3)) * 10
    (probabilities,) = run_onnx(tmp_path / "onnx" / "decoder.onnx", "z", z)
    np.testing.assert_allclose(probabilities, codec.decode(z.astype(np.float32)), atol=1e-5)
    assert probabilities.min() >= 0
    assert probabilities.max() <= 1


def test_a_deterministic_encoder_has_one_output_and_columns_keep_their_offsets(tmp_path):
    """8,000,001.1 is no float32: the nearest is a thirtieth of the scale away."""
    mean, scale = np.array([8_000_001.1, 0.0]), np.array([3.0, 1e-4])
    codec = codec_of("mlp:hidden=8", (2,), mean=mean, scale=scale, stochastic=False)
    assert export_onnx(codec, tmp_path / "onnx").outputs == ("mu",)
    x = (mean + RNG.normal(size=(9, 2)) * scale).astype(np.float32)
    (mu,) = run_onnx(tmp_path / "onnx" / "encoder.onnx", "x", x)
    np.testing.assert_allclose(mu, codec.encode(x).mu, rtol=1e-5, atol=1e-5)


def test_a_file_that_differs_from_the_model_is_not_kept(tmp_path, monkeypatch):
    class Wrong(export._Decoder):
        def forward(self, z):
            return super().forward(z) + 1e-3

    monkeypatch.setattr(export, "_Decoder", Wrong)
    with pytest.raises(ModelFileError, match=r"the ONNX decoder is off by 0\.001"):
        export_onnx(codec_of("mlp:hidden=8", (4,)), tmp_path / "onnx")
    assert list(tmp_path.iterdir()) == []


def test_what_is_missing_is_said_in_one_line(monkeypatch):
    monkeypatch.setattr(export, "_EXTRA", ("onnx", "onnxscrpt"))
    with pytest.raises(ConfigError, match=r"^ONNX export needs onnxscrpt: pip install 'wiseale\[onnx\]'$"):
        require_extra()


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    np.save(folder / "measured.npy", RNG.normal(size=(60, 4)) * 5 + 100)
    quick = ["--network", "mlp:hidden=8", "--max-epochs", "1", "--batch-size", "8", "--latent-dim", "2"]
    for arguments in (
        ["train", str(folder / "measured.npy"), *quick, "--out", str(folder / "run")],
        ["evaluate", str(folder / "run")],
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    return folder / "run"


def command(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.fixture(scope="module")
def onnx_directory(run_directory):
    """What a user gets from the command, and what it printed."""
    shown = subprocess.run(
        [sys.executable, "-m", "wiseale", "export", run_directory, "--format", "onnx", "-o", run_directory / "onnx"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stderr == ""
    return run_directory / "onnx", shown.stdout


@pytest.mark.long
def test_the_command_says_the_error_and_writes_a_card(onnx_directory, run_directory):
    folder, shown = onnx_directory
    assert f"opset {OPSET}; largest error in onnxruntime: encoder " in shown
    assert sorted(path.name for path in folder.iterdir()) == [
        *("README.md", "decoder.onnx", "encoder.onnx", "manifest.json")
    ]
    x = np.load(run_directory.parent / "measured.npy").astype(np.float32)
    mu, _ = run_onnx(folder / "encoder.onnx", "x", x)
    np.testing.assert_allclose(mu, load(run_directory).transform(x), atol=1e-5)
    with (folder / "README.md").open("a") as card:
        card.write("A line of its owner's.")
    verify_directory(folder)


def test_an_exported_model_loads(capsys, tmp_path, run_directory):
    assert command(capsys, "export", run_directory, "--format", "model", "-o", tmp_path / "model")[0] == 0
    x = np.load(run_directory.parent / "measured.npy")
    np.testing.assert_array_equal(load(tmp_path / "model").transform(x), load(run_directory).transform(x))
    assert (tmp_path / "model" / "README.md").exists()
    assert command(capsys, "export", tmp_path / "model", "--format", "model", "-o", tmp_path / "model")[0] == 0
    code, out, err = command(capsys, "export", run_directory, "--format", "onnx", "-o", tmp_path / "model")
    assert (code, out) == (2, "")
    assert "holds other things (config.json)" in err
    load(tmp_path / "model")
    code, _, err = command(capsys, "export", run_directory, "--format", "model", "-o", "/proc/nowhere/model")
    assert code == 2
    assert err.count("\n") == 1


def test_the_card_tells_what_the_run_knows(run_directory):
    known = provenance(Run.open(run_directory))
    model_config = open_codec(run_directory).model_config
    card = model_card("mine", model_config, known)
    _, header, body = card.split("---\n", 2)
    fields = {key: value.strip() for key, value in (line.split(":", 1) for line in header.splitlines())}
    assert fields["library_name"] == "wiseale"
    assert "wise_ale" in json.loads(fields["tags"])
    (entry,) = json.loads(fields["model-index"])
    evaluation = json.loads((run_directory / "evaluation.json").read_text())
    told = {metric["type"]: metric["value"] for metric in entry["results"][0]["metrics"]}
    assert told == {name: value for name, value in evaluation["measures"].items() if value is not None}
    assert body.startswith("\n# mine\n")
    fingerprint = json.loads((run_directory / "environment.json").read_text())["data_fingerprint"]
    for fact in (
        fingerprint,
        model_config.network,
        model_config.objective,
        "`measured.npy`",
        "| seed | `0` |",
        "| mse |",
    ):
        assert fact in card
    assert str(run_directory.parent) not in card  # no paths of the machine
    for section in ("Intended use", "Training data", "Evaluation", "How to use it"):
        assert f"\n## {section}\n" in card


def test_the_card_of_a_bare_model(tmp_path):
    est = AutoEncoder(network="mlp:hidden=4", max_epochs=1, random_state=0).fit(RNG.normal(size=(20, 3)))
    est.save(tmp_path / "model")
    card = model_card("bare", open_codec(tmp_path / "model").model_config, Provenance())
    assert "| data | not recorded |" in card
    assert "Not evaluated." in card
    assert open_codec(tmp_path / "model").model_config.data_fingerprint in card


@pytest.mark.long
def test_code_on_the_cards_runs(tmp_path, run_directory, onnx_directory):
    load(run_directory).save(tmp_path / "model")
    data = run_directory.parent / "measured.npy"
    cards = {
        tmp_path: model_card("m", open_codec(tmp_path / "model").model_config, Provenance()),
        onnx_directory[0]: (onnx_directory[0] / "README.md").read_text(),
    }
    checks = ("assert X_hat.shape == X.shape", "assert x_hat.shape == x.shape and mu.shape == sigma.shape")
    for (folder, card), check in zip(cards.items(), checks, strict=True):
        code = card.split("```python\n")[1].split("```")[0].replace("path/to/this/directory", "model")
        prepare = f"import numpy\nX = numpy.load({str(data)!r})\nx = X.astype('f4')\n"
        subprocess.run([sys.executable, "-c", f"{prepare}{code}\n{check}"], check=True, cwd=folder)

import json
import pickle

import pytest
import torch

from wiseale.errors import ModelFileError
from wiseale.models.model_file import ModelConfig, load_model, save_model
from wiseale.objectives import make_objective, objective_names
from wiseale.platform.atomic_files import verify_directory, write_directory, write_text
from wiseale.platform.json_files import to_json
from wiseale.priors import OwnPrior
from wiseale.spaces import plain_space
from wiseale.spaces.units import Affine

SPACE = plain_space((3,), scaling="columns")
SETTINGS = ModelConfig("mlp:hidden=4", "gaussian:x_sigma=0.5", "wise_ale", SPACE, 2)


@pytest.fixture
def saved(tmp_path):
    model = SETTINGS.build()
    model.units = Affine(torch.arange(3.0).double(), torch.tensor([1.0, 2.0, 3.0]).double())
    save_model(tmp_path / "model", model, SETTINGS)
    return tmp_path / "model", model


def rewrite(directory, **changes):
    """Change config.json and make the manifest agree, so that only the content is wrong."""
    config = json.loads((directory / "config.json").read_text())
    config = {**config, **changes, "space": config["space"] | changes.get("space", {})}
    weights = (directory / "model.safetensors").read_bytes()

    def fill(temporary):
        (temporary / "config.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
        (temporary / "model.safetensors").write_bytes(weights)

    write_directory(directory, fill)


def test_round_trip_is_exact(saved):
    path, model = saved
    loaded, model_config = load_model(path)
    assert model_config == SETTINGS
    x, epsilon = torch.randn(5, 3), torch.randn(5, 2)
    before, after = model(x, epsilon), loaded(x, epsilon)
    assert torch.equal(before[0].mu, after[0].mu)
    assert torch.equal(before[2].mean, after[2].mean)
    assert torch.equal(model.units(x), loaded.units(x))
    assert after[2].x_sigma == 0.5


def test_loading_leaves_the_global_generator_alone(saved):
    before = torch.random.get_rng_state()
    load_model(saved[0])
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_flipped_bit_is_noticed(saved, name):
    content = bytearray((saved[0] / name).read_bytes())
    content[len(content) // 2] ^= 4
    (saved[0] / name).write_bytes(content)
    with pytest.raises(ModelFileError, match=f"{name} is damaged"):
        load_model(saved[0])


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "manifest.json"])
def test_a_missing_file_is_noticed(saved, name):
    (saved[0] / name).unlink()
    with pytest.raises(ModelFileError, match=name):
        load_model(saved[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 99}, "has version 99"),
        ({"format": "other"}, "describes a 'other'"),
        ({"network": "resnet"}, "unknown network 'resnet'"),
        ({"network": "mlp:hidden=5"}, "do not fit the network"),
        ({"latent_dim": 3}, "do not fit the network"),
        ({"latent_dim": 0}, "schema"),
        ({"space": {"x_shape": []}}, "schema"),
        ({"space": {"kind": "trees"}}, "schema"),
        ({"space": {"kind": "images"}}, "schema"),
        ({"surprise": 1}, "schema"),
        ({"likelihood": None}, "schema"),
        ({"space": {"scaling": "none"}}, "do not fit the network"),
        ({"space": {"reading": "backwards"}}, "schema"),
        ({"space": {"columns": [{"name": "a"}, {"name": "b"}]}}, "schema"),
        ({"space": {"columns": [{"name": 1}] * 3}}, "schema"),
        ({"space": {"columns": [{"name": "a", "kind": "colour"}] * 3}}, "schema"),
        ({"space": {"columns": [{"name": "a", "kind": "category"}] * 3}}, "schema"),
    ],
)
def test_what_disagrees_is_refused(saved, changes, message):
    rewrite(saved[0], **changes)
    with pytest.raises(ModelFileError, match=message) as error:
        load_model(saved[0])
    assert "\n" not in str(error.value)


def test_a_pickle_in_disguise_is_refused_unread(saved, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (tmp_path.joinpath("exploded").touch, ())

    config = (saved[0] / "config.json").read_bytes()

    def fill(temporary):
        (temporary / "config.json").write_bytes(config)
        (temporary / "model.safetensors").write_bytes(pickle.dumps(Bomb()))

    write_directory(saved[0], fill)
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(saved[0])
    assert not (tmp_path / "exploded").exists()


def test_no_model(tmp_path):
    with pytest.raises(ModelFileError, match="no model at"):
        load_model(tmp_path / "nothing")


def test_a_failed_write_leaves_the_old_directory(saved):
    def fail(temporary):
        (temporary / "half").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_directory(saved[0], fail)
    load_model(saved[0])
    assert [p.name for p in saved[0].parent.iterdir()] == ["model"]


def test_a_manifest_cannot_point_outside(saved):
    manifest = saved[0] / "manifest.json"
    manifest.write_text(json.dumps({"sha256": {"../secret": "0"}}))
    with pytest.raises(ModelFileError, match="lacks"):
        verify_directory(saved[0])


def test_text_is_replaced_at_once(tmp_path):
    write_text(tmp_path / "a.json", to_json({"β": 1}))
    write_text(tmp_path / "a.json", to_json({"β": 2}))
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"β": 2}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize("name", objective_names())
def test_own_prior_is_declared_by_exactly_the_objectives_that_build_one(name):
    objective = make_objective(name)
    assert isinstance(objective.build(SPACE, 2), OwnPrior) == objective.own_prior

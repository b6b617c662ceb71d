from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiseale import registry
from wiseale.config import SettingError, Settings, TrainConfig, build, from_values, parse_spec, setting, spec_of
from wiseale.errors import ConfigError


@dataclass(frozen=True)
class Example(Settings):
    count: int = setting(1, minimum=1)
    rate: float | Literal["auto"] = setting(0.5, above=0, below=2)
    sizes: tuple[int, ...] = setting((3,), minimum=1)
    on: bool = setting(False)
    note: str | None = setting(None)


@pytest.mark.parametrize(
    ("key", "written", "read"),
    [
        ("count", "7", 7),
        ("rate", "1/64", 1 / 64),
        ("rate", "auto", "auto"),
        ("rate", 1, 1.0),
        ("sizes", "4,5", (4, 5)),
        ("sizes", [4, 5], (4, 5)),
        ("sizes", "4", (4,)),
        ("on", "true", True),
        ("note", "none", None),
        ("note", "x", "x"),
    ],
)
def test_values_are_read_by_their_type(key, written, read):
    value = getattr(from_values(Example, {key: written}), key)
    assert value == read
    assert type(value) is type(read)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("count", "1.5", "must be a whole number, got '1.5'"),
        ("count", 1.5, "must be a whole number"),
        ("count", True, "must be a whole number"),
        ("count", 0, "must be at least 1, got 0"),
        ("rate", "0", "must be above 0"),
        ("rate", "2", "must be below 2"),
        ("rate", "1/0", "must be a number or 'auto'"),
        ("rate", "inf", "must be finite"),
        ("sizes", "3,0", "must be at least 1, got 0"),
        ("sizes", "3,x", "numbers separated by commas"),
        ("on", "yes", "must be true or false, got 'yes'"),
        ("cuont", 1, "did you mean 'count'"),
    ],
)
def test_wrong_values_are_named(key, value, message):
    with pytest.raises(SettingError, match=message) as error:
        from_values(Example, {key: value})
    assert error.value.name == key


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("mlp", "mlp", {}),
        ("mlp:hidden=512,256", "mlp", {"hidden": "512,256"}),
        ("wise_ale:prior_weight=1,estimator=mc", "wise_ale", {"prior_weight": "1", "estimator": "mc"}),
        ("sine:n-test=5, n=3", "sine", {"n_test": "5", "n": "3"}),
        ("a:x=1=2", "a", {"x": "1=2"}),
    ],
)
def test_specs(text, name, values):
    assert parse_spec(text) == (name, values)


def test_a_spec_must_begin_with_a_key():
    with pytest.raises(ConfigError, match="name:key=value"):
        parse_spec("mlp:512,256")


@given(st.floats(min_value=1e-12, max_value=1e12), st.integers(0, 2**40))
def test_settings_survive_being_written_as_text(lr, seed):
    config = TrainConfig(lr=lr, seed=seed)
    assert from_values(TrainConfig, {"lr": repr(lr), "seed": str(seed)}) == config


def test_a_class_of_ones_own_is_built_by_its_registered_name(monkeypatch):
    monkeypatch.setattr(registry, "REGISTRIES", {"objective": {"aevb": "wiseale.objectives.aevb:Aevb"}})
    registry.register("objective", "example", Example)
    registry.register("objective", "example", Example)  # a notebook's cell run twice
    made = build("objective", "example:count=3")
    assert made == Example(count=3)
    assert build("objective", spec_of("objective", made)) == made
    with pytest.raises(ConfigError, match=r"objective 'aevb'.*wiseale.objectives.aevb:Aevb"):
        registry.register("objective", "aevb", Example)


def test_a_class_inside_a_function_is_not_registered():
    class Inner(Settings):
        pass

    with pytest.raises(ConfigError, match=r"^Inner .*top level"):
        registry.register("objective", "inner", Inner)

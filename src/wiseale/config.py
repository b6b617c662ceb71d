"""Settings: frozen dataclasses, read from command-line strings, TOML or JSON, and checked in one place.

A setting is declared once, as a dataclass field made by :func:`setting`; its type, range and help text serve the
command line, the files and the Python API alike.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from wiseale import registry
from wiseale.errors import ConfigError
from wiseale.platform.json_files import parse_json, read_text

S = TypeVar("S", bound="Settings")

Role = Literal["science", "machine", "output"]
"""What a setting is for: it decides the result, says where and how that is computed, or what is written of it."""


class SettingError(ConfigError):
    """One setting is wrong; callers may put the spelling their user knows in front (``--latent-dim``)."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name = name
        self.problem = problem

    def __reduce__(self) -> tuple[type[SettingError], tuple[str, str]]:
        return type(self), (self.name, self.problem)


def setting(
    default: Any,
    help: str = "",
    *,
    role: Role | None = None,
    given: bool = False,
    kind: str | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """A field with help and a range: ``minimum`` and ``maximum`` are allowed, ``above`` and ``below`` are not.

    ``role`` says what it is for; a part of a spec has none of its own, but that of the setting that holds the spec.
    ``given`` is for what belongs to the question and not to the answer (data, held-out rows, seed): it is never
    searched. ``kind`` is the registered kind whose spec it holds (``"objective"``).
    """
    limits = {"minimum": minimum, "maximum": maximum, "above": above, "below": below}
    limits = {key: limit for key, limit in limits.items() if limit is not None}
    return field(default=default, metadata={"help": help, "limits": limits, "role": role, "given": given, "kind": kind})


@dataclass(frozen=True)
class Settings:
    """Base of every dataclass of settings: values are checked against their declared type and range when it is made."""

    def __post_init__(self) -> None:
        hints = typing.get_type_hints(type(self))
        for item in dataclasses.fields(self):
            value = convert(item.name, getattr(self, item.name), hints[item.name])
            _check_range(item.name, value, item.metadata.get("limits", {}))
            object.__setattr__(self, item.name, value)


def from_values(cls: type[S], values: Mapping[str, Any]) -> S:
    """Make settings from a mapping of strings or typed values; an unknown key is an error naming the nearest."""
    known = [item.name for item in dataclasses.fields(cls)]
    for key in values:
        if key not in known:
            near = registry.did_you_mean(key, known)
            raise SettingError(key, f"is not a setting of {cls.__name__}{near} (known: {', '.join(known)})")
    return cls(**values)


def _check_range(name: str, value: Any, limits: Mapping[str, float]) -> None:
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, int | float):
            continue
        if isinstance(number, float) and not math.isfinite(number):
            raise SettingError(name, f"must be finite, got {number}")
        if isinstance(number, int) and abs(number) >= _MAX_NUMBER:
            raise SettingError(name, f"is too large: at most {_MAX_NUMBER - 1} can be computed with")
        if "minimum" in limits and number < limits["minimum"]:
            raise SettingError(name, f"must be at least {limits['minimum']}, got {number}")
        if "maximum" in limits and number > limits["maximum"]:
            raise SettingError(name, f"must be at most {limits['maximum']}, got {number}")
        if "above" in limits and number <= limits["above"]:
            raise SettingError(name, f"must be above {limits['above']}, got {number}")
        if "below" in limits and number >= limits["below"]:
            raise SettingError(name, f"must be below {limits['below']}, got {number}")


def convert(name: str, value: Any, hint: Any) -> Any:
    """Read a value as the annotated type: numbers may be strings (``"1/64"`` too), tuples are comma-separated."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    for option in sorted(options, key=lambda option: option is not type(None)):
        read = _read(value, option)
        if read is not _NOT_READ:
            return read
    raise SettingError(name, f"must be {' or '.join(_describe(option) for option in options)}, got {_shown(value)}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


_NOT_READ = object()
_MAX_NUMBER = 1 << 63
_LONGEST_SHOWN = 200  # characters of a wrong value
_MAX_BYTES = 16 << 20  # of a settings file


def _read(value: Any, hint: Any) -> Any:
    if hint is type(None):
        return None if value is None or value == "none" else _NOT_READ
    if typing.get_origin(hint) is Literal:
        return value if value in typing.get_args(hint) and isinstance(value, str) else _NOT_READ
    if typing.get_origin(hint) is tuple:
        items = _split_list(value) if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
        read = tuple(_read(item, typing.get_args(hint)[0]) for item in items)
        return _NOT_READ if any(item is _NOT_READ for item in read) else read
    if hint is bool:
        words = {"true": True, "false": False}
        return (
            value if isinstance(value, bool) else words.get(value, _NOT_READ) if isinstance(value, str) else _NOT_READ
        )
    if hint is str:
        return value if isinstance(value, str) else _NOT_READ
    if hint in (int, float):
        return _read_number(value, hint)
    raise TypeError(f"settings cannot have the type {hint}")


def _read_number(value: Any, kind: type[int] | type[float]) -> Any:
    if isinstance(value, bool):
        return _NOT_READ
    if isinstance(value, str):
        try:
            if kind is float and value.count("/") == 1:
                above, below = value.split("/")
                return float(above) / float(below)
            return kind(value)
        except (ValueError, ZeroDivisionError):
            return _NOT_READ
    if hasattr(value, "__index__"):
        try:
            return kind(value.__index__())
        except OverflowError:
            return _NOT_READ
    return float(value) if kind is float and hasattr(value, "__float__") else _NOT_READ


def _describe(hint: Any) -> str:
    if typing.get_origin(hint) is Literal:
        return " or ".join(repr(word) for word in typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        return f"numbers separated by commas ({_describe(typing.get_args(hint)[0])} each)"
    return {type(None): "none", bool: "true or false", int: "a whole number", float: "a number", str: "text"}[hint]


def split_items(text: str, separator: str = ",") -> list[str]:
    """The text cut at separators outside double quotes; at all of them where a quote is not closed.

    >>> split_items('"bill,len":number,id:ignore')
    ['"bill,len":number', 'id:ignore']
    """
    items, quoted = [""], False
    for letter in text:
        quoted ^= letter == '"'
        if letter == separator and not quoted:
            items.append("")
        else:
            items[-1] += letter
    return text.split(separator) if quoted else items


def quote(text: str) -> str:
    """Text in double quotes, as CSV files write it."""
    return '"' + text.replace('"', '""') + '"'


def unquote(text: str) -> str:
    """Text without the double quotes around it, if it has any.

    >>> unquote('"bill,len"'), unquote("mass")
    ('bill,len', 'mass')
    """
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].replace('""', '"') if quoted else text


def _split_list(text: str) -> list[str]:
    return [unquote(item) for item in split_items(text)]


def parse_spec(text: str) -> tuple[str, dict[str, str]]:
    """Split ``name:key=value,key=value``; an item without ``=`` continues the value before (``mlp:hidden=512,256``).

    What is in double quotes is not split: ``sales.csv:kinds="price, net":number,id:ignore``.
    """
    name, _, rest = text.partition(":")
    values: dict[str, str] = {}
    key = ""
    for item in split_items(rest) if rest else []:
        if "=" in item.partition('"')[0]:
            key, _, value = item.partition("=")
            values[key.strip().replace("-", "_")] = value.strip()
        elif values:
            values[key.strip().replace("-", "_")] += f",{item.strip()}"
        else:
            raise ConfigError(f"{text!r} is not of the form name:key=value,key=value")
    return name.strip(), values


def build(kind: str, spec: str, **overrides: Any) -> Any:
    """The registered thing a spec names, with its settings: ``build("objective", "wise_ale:estimator=mc")``."""
    name, values = parse_spec(spec)
    cls = registry.lookup(kind, name)
    try:
        return from_values(cls, values | overrides)
    except SettingError as error:
        raise ConfigError(f"{kind} {name}: {error}") from None


def spec_of(kind: str, thing: Settings) -> str:
    """The complete spec of a registered thing, every setting written out; :func:`build` makes an equal one from it."""
    for name, path in registry.REGISTRIES[kind].items():
        if path == f"{type(thing).__module__}:{type(thing).__qualname__}":
            items = ",".join(f"{item.name}={_write(getattr(thing, item.name))}" for item in dataclasses.fields(thing))
            return f"{name}:{items}" if items else name
    raise ConfigError(f"{type(thing).__name__} is not a registered {kind} (known: {', '.join(registry.names(kind))})")


def _write(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(_write(item) for item in value)
    return {True: "true", False: "false", None: "none"}.get(value, str(value)) if not _is_number(value) else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def read_file(path: Path) -> dict[str, Any]:
    """The settings in a TOML or JSON file; of a run's own ``config.json`` the ``resolved`` facts are left out."""
    try:
        text = read_text(path, _MAX_BYTES)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        values = parse_json(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold a table of settings")
    values.pop("resolved", None)
    return {key.replace("-", "_"): value for key, value in values.items()}


@dataclass(frozen=True)
class TrainConfig(Settings):
    """The settings a user asks for; ``None`` means the dataset's own preset.

    :func:`wiseale.training.plan.resolve` makes :class:`wiseale.training.settings.RunSettings` of them.
    """

    data: str = setting("", "dataset (sine:n=20000) or path", role="science", given=True)
    objective: str = setting(
        "wise_ale",
        "system to train, with settings: wise_ale:prior_weight=1,estimator=mc",
        role="science",
        kind="objective",
    )
    latent_dim: int | None = setting(None, "size of the code", role="science", minimum=1)
    network: str | None = setting(
        None, "encoder and decoder, with settings: mlp:hidden=512,256", role="science", kind="network"
    )
    likelihood: str | None = setting(
        None,
        "bernoulli, or gaussian:x_sigma=1; table is chosen for columns with kinds",
        role="science",
        kind="likelihood",
    )
    columns: str | None = setting(
        None,
        "kinds of a table's columns: price:number,colour:category,visits:count,sold:binary,id:ignore; species:label is "
        "not learned from and colours the pictures",
        role="science",
        given=True,
    )
    missing: Literal["learn", "error"] | None = setting(
        None, "missing cells of a table: learn (default), or error", role="science", given=True
    )
    unseen: Literal["error", "missing", "other"] | None = setting(
        None,
        "levels of a table that training did not see: error (default), missing, or other (with those in under 5 rows)",
        role="science",
        given=True,
    )
    batch_size: int | None = setting(None, "observations per step (M)", role="science", minimum=2)
    max_epochs: int | None = setting(None, "passes over the training data", role="science", minimum=1)
    lr: float | None = setting(None, "learning rate of Adam", role="science", above=0)
    lr_schedule: str | None = setting(
        None, "constant, cosine:final=0.1, or step:epochs=30,factor=0.5", role="science", kind="lr schedule"
    )
    prior_warmup: float | None = setting(
        None, "epochs over which the prior's weight grows from 0 to its value", role="science", minimum=0
    )
    recipe: Literal["paper", "ours"] = setting(
        "paper",
        "training settings of the paper's datasets: the paper's, or ours, which train faster and better",
        role="science",
    )
    max_grad_norm: float | None = setting(None, "clip the gradient to this norm", role="science", above=0)
    patience: int | Literal["auto"] | None = setting(
        "auto",
        "stop after this many epochs without a better held-out loss; none: never; auto: if no length is given",
        role="science",
        minimum=1,
    )
    held_out: float | None = setting(
        None,
        "part of the training rows kept to watch the loss on (default: 0.1 of your own data, else 0.05)",
        role="science",
        given=True,
        minimum=0,
        below=1,
    )
    held_out_most: int | None = setting(
        None,
        "rows held out at the most, however large that part is (default: 50000)",
        role="science",
        given=True,
        minimum=1,
    )
    watch_every: int | None = setting(
        None,
        "epochs between two measurements of the held-out loss (default: 1, more where epochs are short)",
        role="science",
        minimum=1,
    )
    init_from: str | None = setting(
        None, "start from the weights of this finished run or model", role="science", given=True
    )
    seed: int = setting(0, "every random draw of the run follows from it", role="science", given=True, minimum=0)
    processes: int | None = setting(
        None, "processes that share each batch, on this machine", role="machine", minimum=1, maximum=1024
    )
    threads: int | Literal["auto"] | None = setting(
        None,
        "CPU threads of torch in each process; auto tries some first and keeps the fastest",
        role="machine",
        minimum=1,
        maximum=1024,
    )
    device: str = setting("auto", "auto, cpu, cuda, mps, ...", role="machine")
    precision: Literal["fp32", "bf16"] = setting("fp32", "arithmetic of the forward pass", role="science")
    data_root: str | None = setting(
        None, "folder of the datasets (default: $WISEALE_DATA, else the cache folder)", role="machine"
    )
    checkpoint_every: int = setting(500, "steps between checkpoints", role="machine", minimum=1)
    logger: str | None = setting(
        None,
        f"also write the metrics for {', '.join(registry.names('logger'))}, with settings: mlflow:experiment=sales",
        role="output",
        kind="logger",
    )
    figures: bool = setting(True, "draw the finished run's pictures in RUN/figures", role="output")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size is not None and self.processes is not None and self.batch_size % self.processes:
            problem = f"must divide evenly among the {self.processes} processes, got {self.batch_size}"
            raise SettingError("batch_size", problem)
        self._read_table_as_asked()

    def _read_table_as_asked(self) -> None:
        """Make ``columns``, ``missing`` and ``unseen`` settings of the data: who loads it again reads it alike."""
        asked = {"kinds": self.columns, "missing": self.missing, "unseen": self.unseen}
        settings = ",".join(f"{name}={value}" for name, value in asked.items() if value)
        if settings and self.data:
            joined = "," if re.search(r":[A-Za-z][\w-]*=", self.data) else ":"
            object.__setattr__(self, "data", f"{self.data}{joined}{settings}")
            for name in ("columns", "missing", "unseen"):
                object.__setattr__(self, name, None)


ROLES: Mapping[str, Role] = {item.name: item.metadata["role"] for item in dataclasses.fields(TrainConfig)}
"""What every training setting is for."""

SCIENCE = tuple(name for name, role in ROLES.items() if role == "science")
"""Settings that decide a result: other values are another experiment. Only they are compared and reported."""

SEARCHED = tuple(
    item.name for item in dataclasses.fields(TrainConfig) if item.name in SCIENCE and not item.metadata["given"]
)
"""Settings that belong to the answer: a search may vary them."""

SPECS: Mapping[str, str] = {
    item.name: item.metadata["kind"] for item in dataclasses.fields(TrainConfig) if item.metadata["kind"]
}
"""Settings that hold a spec, and the registered kind of each."""

"""Settings: frozen dataclasses, read from command-line strings, TOML or JSON, and checked in one place.

:mod:`wiseale.config.settings` declares and checks them; here are specs (``name:key=value``), files, and the settings of
a training.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from wiseale import registry
from wiseale.config.settings import SettingError, Settings, convert, from_values, quote, setting, split_items, unquote
from wiseale.errors import ConfigError
from wiseale.platform.json_files import parse_json, read_text

__all__ = ["SettingError", "Settings", "convert", "from_values", "quote", "setting", "split_items", "unquote"]


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
            items = ",".join(f"{item.name}={_written(getattr(thing, item.name))}" for item in dataclasses.fields(thing))
            return f"{name}:{items}" if items else name
    raise ConfigError(f"{type(thing).__name__} is not a registered {kind} (known: {', '.join(registry.names(kind))})")


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    words = {True: "true", False: "false", None: "none"}
    return repr(value) if type(value) in (int, float) else words.get(value, str(value))


def read_file(path: Path) -> dict[str, Any]:
    """The settings in a TOML or JSON file; of a run's own ``config.json`` the ``resolved`` facts are left out."""
    try:
        text = read_text(path, 16 << 20)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        values = parse_json(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid {'JSON' if path.suffix == '.json' else 'TOML'}: {error}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold a table of settings")
    return {key.replace("-", "_"): value for key, value in values.items() if key != "resolved"}


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
        # Make ``columns``, ``missing`` and ``unseen`` settings of the data: who loads it again reads it alike.
        reading = {"kinds": self.columns, "missing": self.missing, "unseen": self.unseen}
        settings = ",".join(f"{name}={value}" for name, value in reading.items() if value)
        if settings and self.data:
            joined = "," if re.search(r":[A-Za-z][\w-]*=", self.data) else ":"
            object.__setattr__(self, "data", f"{self.data}{joined}{settings}")
            for name in ("columns", "missing", "unseen"):
                object.__setattr__(self, name, None)


_META = {item.name: item.metadata for item in dataclasses.fields(TrainConfig)}

ROLES: Mapping[str, str] = {name: metadata["role"] for name, metadata in _META.items()}
"""What every training setting is for."""

SCIENCE = tuple(name for name, role in ROLES.items() if role == "science")
"""Settings that decide a result: other values are another experiment. Only they are compared and reported."""

SEARCHED = tuple(name for name in SCIENCE if not _META[name]["given"])
"""Settings that belong to the answer: a search may vary them."""

SPECS: Mapping[str, str] = {name: metadata["kind"] for name, metadata in _META.items() if metadata["kind"]}
"""Settings that hold a spec, and the registered kind of each."""

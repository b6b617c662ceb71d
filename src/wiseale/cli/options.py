"""Options and arguments of the commands; those of settings are made from their dataclass and written once."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import click

from wiseale import config
from wiseale.config import SettingError, Settings
from wiseale.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound=Settings)


class _Data(click.ParamType[str]):
    """A dataset, or a path to the user's own file."""

    name = "data"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from wiseale.data.source import named_data

        named = named_data(value)
        if named.note:
            click.echo(f"wiseale: {named.note}", err=True)
        return named.spec


class _ModelPlace(click.ParamType[Path]):
    """A model's directory, or a name such as ``zoo:mnist-wise_ale`` or ``hf://owner/name``."""

    name = "model"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from wiseale.models.places import locate

        return value if isinstance(value, Path) else locate(value)


DATA, MODEL = _Data(), _ModelPlace()


class VariadicCommand(click.Command):
    """A command some of whose options take every word up to the next: ``--objectives aevb wise_ale --seeds 3``."""

    variadic: ClassVar[tuple[str, ...]] = ("--objectives", "--space")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the name before every value, as click wants it."""
        expanded: list[str] = []
        name: str | None = None
        for position, word in enumerate(args):
            if word in self.variadic:
                name = word
                if position + 1 == len(args) or args[position + 1].startswith("--"):
                    expanded.append(word)  # nothing follows: click says so
            elif name is not None and not word.startswith("-"):
                expanded += [name, word]
            else:
                name = None
                expanded.append(word)
        return super().parse_args(ctx, expanded)


cluster_option = click.option(
    "--cluster", metavar="ADDRESS|local:N", help="run on a Dask cluster, or on N Dask workers here"
)


def settings_options(cls: type[Settings], leave_out: Collection[str] = ()) -> Callable[[F], F]:
    """Add an option for every field of the dataclass, and ``--config`` for a file of them."""

    def decorate(function: F) -> F:
        for item in reversed(dataclasses.fields(cls)):
            if item.name not in leave_out:
                function = _option(cls, item)(function)
        file = click.Path(path_type=Path)
        # Read before the other options, which it gives defaults to.
        how: dict[str, Any] = {"type": file, "is_eager": True, "callback": _take_defaults}
        return click.option("--config", "config_file", help="TOML or JSON file of these options", **how)(function)

    return decorate


def _take_defaults(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Let the file stand for the options that are the command's own, such as --out: click checks and converts them."""
    if file is not None:
        own = {name: value for name, value in config.read_file(file).items() if name in _own_options(context)}
        context.default_map = {**(context.default_map or {}), **own}
    return file


def _own_options(context: click.Context) -> set[str]:
    """Options of the command that are no settings of a training, by their names in a file."""
    settings = {item.name for item in dataclasses.fields(config.TrainConfig)}
    return {str(option.name) for option in context.command.params} - settings - {"config_file"}


def read_settings(cls: type[S], config_file: Path | None, given: dict[str, Any]) -> S:
    """The settings from the file, overridden by the options that were given; errors use the spelling the user used."""
    written = {key: value for key, value in given.items() if value is not None}
    from_file = config.read_file(config_file) if config_file else {}
    if (context := click.get_current_context(silent=True)) is not None:
        from_file = {name: value for name, value in from_file.items() if name not in _own_options(context)}
    try:
        return config.from_values(cls, from_file | written)
    except SettingError as error:
        if error.name in written:
            raise ConfigError(f"{option_name(error.name)} {error.problem}") from None
        raise ConfigError(f"{config_file}: {error}" if error.name in from_file else str(error)) from None


@contextmanager
def spelled_as_options() -> Iterator[None]:
    """Name settings in errors as the command line spells them."""
    try:
        yield
    except SettingError as error:
        raise ConfigError(f"{option_name(error.name)} {error.problem}") from None


def option_name(field: str) -> str:
    """``latent_dim`` → ``--latent-dim``."""
    return f"--{field.replace('_', '-')}"


def _option(cls: type[Settings], item: dataclasses.Field[Any]) -> Callable[[F], F]:
    """``--name VALUE``, or ``--name/--no-name`` for a setting that is on or off."""
    name = option_name(item.name)
    if typing.get_type_hints(cls)[item.name] is bool:
        return click.option(f"{name}/--no-{name[2:]}", item.name, default=None, help=_help(item))
    return click.option(name, item.name, metavar=_metavar(cls, item.name), help=_help(item))


def _help(item: dataclasses.Field[Any]) -> str:
    value = ("yes" if item.default else "no") if isinstance(item.default, bool) else item.default
    default = f" [default: {value}]" if value not in (None, "") else ""
    return f"{item.metadata['help']}{default}"


def _metavar(cls: type[Settings], name: str) -> str:
    hint = typing.get_type_hints(cls)[name]
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    if all(isinstance(kind, str) for kind in kinds):
        return "|".join(kinds)
    return {int: "N", float: "X"}.get(kinds[0], "TEXT")

"""Options and arguments of the commands; those of settings are made from their dataclass and written once."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

import click

from wiseale import config
from wiseale.config import SettingError, TrainConfig
from wiseale.errors import ConfigError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_VARIADIC = ("--objectives", "--space")


def data(value: str) -> str:
    """The spec of a dataset, or of a path to the user's own file."""
    from wiseale.data.source import named_data

    named = named_data(value)
    if named.note:
        click.echo(f"wiseale: {named.note}", err=True)
    return named.spec


def model(value: str | Path) -> Path:
    """A model's directory, also from a name such as ``zoo:mnist-wise_ale`` or ``hf://owner/name``."""
    from wiseale.models.places import locate

    return value if isinstance(value, Path) else locate(value)


DATA, MODEL = click.types.FuncParamType(data), click.types.FuncParamType(model)


class VariadicCommand(click.Command):
    """A command some of whose options take every word up to the next: ``--objectives aevb wise_ale --seeds 3``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Write the name before every value, as click wants it."""
        expanded: list[str] = []
        name: str | None = None
        for word, following in zip(args, [*args[1:], "--"], strict=True):
            if word in _VARIADIC:
                name = word
                if following.startswith("--"):
                    expanded.append(word)  # nothing follows: click says so
            elif name is not None and not word.startswith("-"):
                expanded += [name, word]
            else:
                name = None
                expanded.append(word)
        return super().parse_args(ctx, expanded)


@dataclass(frozen=True)
class ArrayTask:
    """Task ``number`` of ``count``, from 1; without a count there are as many tasks as there are things to do."""

    number: int
    count: int | None = None

    def part(self, work: Sequence[T], what: str) -> Sequence[T]:
        """Every ``count``-th element, beginning with this task's; ``what`` the elements are, for an error.

        >>> ArrayTask(2, 3).part(range(8), "files")
        range(1, 8, 3)
        """
        if self.count is None and self.number > len(work):
            raise ConfigError(f"--job {self.number}: there are {len(work)} {what}, numbered from 1")
        return work[self.number - 1 :: self.count or len(work)]


def _array_task(ctx: click.Context, param: click.Parameter, value: str | None) -> ArrayTask | None:
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,9})(?:/(\d{1,9}))?", value)
    number, count = (int(match[1]), int(match[2]) if match[2] else None) if match else (0, None)
    if number < 1 or (count is not None and number > count):
        raise click.BadParameter(f"must be K or K/N with K from 1 to N, got {value}", ctx, param)
    return ArrayTask(number, count)


job_option = click.option(
    "--job",
    callback=_array_task,
    metavar="K[/N]",
    help="a task of a job array: do only the K-th, or every N-th from the K-th on; a call without it comes last",
)
cluster_option = click.option(
    "--cluster", metavar="ADDRESS|local:N", help="run on a Dask cluster, or on N Dask workers here"
)
data_root_option = click.option(
    "--data-root", type=click.Path(path_type=Path), help="folder of the datasets [default: $WISEALE_DATA]"
)


def directory_option(help: str) -> Callable[[F], F]:
    """``--out DIR``."""
    return click.option("--out", type=click.Path(path_type=Path), required=True, help=help)


_SCRIPT = """\
#!/bin/bash
# {jobs} runs, each a job of an array; --array=1-{jobs}%8 does at most 8 at a time. A job that is stopped saves a
# checkpoint, and is resumed when it is submitted again. Add what your cluster asks for: --time, --partition, --account.
# When all have ended, write the tables and the report, which also does what is missing:
#   {command}
#SBATCH --job-name=wiseale
#SBATCH --array=1-{jobs}
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={cores}
#SBATCH --chdir={folder}
#SBATCH --output=wiseale-%A_%a.out
#SBATCH --requeue
srun {command} --job "$SLURM_ARRAY_TASK_ID"
"""


def array_script(arguments: Sequence[str], jobs: int, base: TrainConfig) -> str:
    """A SLURM script that does each run of ``wiseale ARGUMENTS`` as a job of an array."""
    command = shlex.join(["wiseale", *(word for word in arguments if word != "--print-jobs")])
    cores = (base.processes or 1) * int(base.threads or 1)
    return _SCRIPT.format(jobs=jobs, command=command, cores=cores, folder=os.getcwd())


def _take_defaults(context: click.Context, parameter: click.Parameter, file: Path | None) -> Path | None:
    """Let the file stand for the options that are the command's own, such as --out: click checks and converts them."""
    if file is not None:
        own = {name: value for name, value in config.read_file(file).items() if name in _own_options(context)}
        context.default_map = {**(context.default_map or {}), **own}
    return file


def _own_options(context: click.Context) -> set[str]:
    """Options of the command that are no settings of a training, by their names in a file."""
    return {str(option.name) for option in context.command.params} - {*config.ROLES, "config_file"}


config_option = click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    is_eager=True,  # it gives defaults to the other options
    callback=_take_defaults,
    help="TOML or JSON file of these options",
)


def settings_options(leave_out: Collection[str]) -> Callable[[F], F]:
    """Add an option for every setting of a training, and ``--config`` for a file of them."""

    def decorate(function: F) -> F:
        for item in reversed(dataclasses.fields(TrainConfig)):
            if item.name not in leave_out:
                function = _option(item)(function)
        return config_option(function)

    return decorate


def read_settings(config_file: Path | None, options: dict[str, Any]) -> TrainConfig:
    """The settings from the file, overridden by the options that are not None; errors use the user's spelling."""
    overrides = {name: value for name, value in options.items() if value is not None}
    from_file = config.read_file(config_file) if config_file else {}
    if (context := click.get_current_context(silent=True)) is not None:
        from_file = {name: value for name, value in from_file.items() if name not in _own_options(context)}
    try:
        return config.from_values(TrainConfig, from_file | overrides)
    except SettingError as error:
        if error.name in overrides:
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


def _option(item: dataclasses.Field[Any]) -> Callable[[F], F]:
    """``--name VALUE``, or ``--name/--no-name`` for a setting that is on or off."""
    name, text, default = option_name(item.name), item.metadata["help"], item.default
    hint = get_type_hints(TrainConfig)[item.name]
    if hint is bool:
        on_or_off = f"{text} [default: {'yes' if default else 'no'}]"
        return click.option(f"{name}/--no-{name[2:]}", item.name, default=None, help=on_or_off)
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    words = all(isinstance(kind, str) for kind in kinds)
    metavar = "|".join(kinds) if words else {int: "N", float: "X"}.get(kinds[0], "TEXT")
    suffix = "" if default in (None, "") else f" [default: {default}]"
    return click.option(name, item.name, metavar=metavar, help=f"{text}{suffix}")

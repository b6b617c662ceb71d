"""The command line: one file per command, thin; a command's module is imported only when it runs."""

from __future__ import annotations

import importlib
import io
import os
import sys
import warnings
from contextlib import suppress
from typing import NoReturn

import click

import wiseale
from wiseale.cli.faults import fault_in_words, one_line
from wiseale.cli.options import option_name
from wiseale.errors import DivergenceError, ReportedByAnotherRankError, TerminatedError, WiseAleError
from wiseale.platform.machine import (
    END_WITH_PARENT,
    SIGPIPE,
    end_imports_on_interrupt,
    end_with_parent,
    sleep_while_waiting,
)
from wiseale.processes.world import STORE

COMMANDS = {
    "demo": "Train six systems on sine waves side by side, then show a table and a report.",
    "train": "Train one auto-encoder on a dataset or on your own file.",
    "resume": "Continue an interrupted run exactly where it stopped.",
    "compare": "Train and evaluate several systems with several seeds, then write a report.",
    "search": "Search for the settings with the best held-out measure.",
    "reproduce": "Run the paper's experiments, judge its claims, write a report.",
    "report": "Write the page of a reproduction, a comparison or a run.",
    "data": "List, look at, fetch and pack datasets.",
    "evaluate": "Measure a finished run on data it has not seen.",
    "embed": "Write the codes of a file's rows under a trained model.",
    "decode": "Write what a trained model makes of codes.",
    "sample": "Write new observations drawn from a trained model.",
    "explore": "Move through a latent space in the browser; compare runs; or write the page as one file.",
    "impute": "Write a table with its missing cells filled by a trained model.",
    "export": "Write a trained model as ONNX or as a model directory, with its card.",
    "zoo": "List the trained models that come with wiseale (zoo:NAME).",
    "cache": "List what the cache folder holds, or clean it.",
    "info": "Print versions, cores, folders, accelerators and the state of the kernels.",
}

_MODULES = {
    **dict.fromkeys(("embed", "decode", "sample", "impute"), "apply"),
    **dict.fromkeys(("compare", "demo"), "compare"),
    **dict.fromkeys(("train", "resume"), "training"),
    **dict.fromkeys(("evaluate", "report"), "evaluate"),
    **dict.fromkeys(("explore", "export", "zoo"), "models"),
    **dict.fromkeys(("info", "cache"), "machine"),
}
"""Files that hold several commands, each under its name; a command in a file of its own is called ``command``."""


class _LazyGroup(click.Group):
    """Lists the commands of ``COMMANDS``; imports the module of a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"wiseale.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name if cmd_name in _MODULES else "command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(wiseale.__version__, prog_name="wiseale")
def group() -> None:
    """Auto-encoders whose prior constrains the aggregate posterior.

    WiSE-ALE, the systems it is compared with, and a tool for your own signals, images and tables. Settings of a system,
    network or dataset are written name:key=value,key=value.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; exit code 0 done, 2 the user's input, 1 a fault of ours, 130/143 interrupted."""
    sleep_while_waiting()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a Windows pipe cannot encode every letter: print ? instead
    if os.environ.pop(END_WITH_PARENT, None):
        end_with_parent()
    end_imports_on_interrupt()
    with warnings.catch_warnings():
        warnings.showwarning = _warn
        code = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        _discard_output()
        broken = isinstance(error, BrokenPipeError)
        code = code or (128 + SIGPIPE if broken else _report(f"error: cannot print: {error.strerror}", 2))
    if STORE in os.environ or "TORCHELASTIC_RUN_ID" in os.environ:
        # One rank of several: threads of its process group may still run, and would abort the interpreter at its exit.
        for output in (sys.stdout, sys.stderr):
            with suppress(ValueError, OSError):  # closed, or its reader has ended
                output.flush()
        os._exit(code)
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        code = group.main(arguments, prog_name="wiseale", standalone_mode=False)
    except click.UsageError as error:
        message: str | None = error.format_message()
    except ReportedByAnotherRankError:
        return 2
    except DivergenceError as error:
        message = error.message(option_name)
    except WiseAleError as error:
        message = str(error)
    except TerminatedError:
        return _report("interrupted", 143)
    except (KeyboardInterrupt, click.Abort):
        return _report("interrupted", 130)
    except (BrokenPipeError, SystemExit):  # click's answer to a reader that has ended, e.g. `| head`, is sys.exit(1)
        _discard_output()
        return 128 + SIGPIPE
    except Exception as error:
        if (message := fault_in_words(error)) is None:
            raise
    else:
        return code if isinstance(code, int) else 0
    return _report(f"error: {message}", 2)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """One line instead of Python's two."""
    _report(f"warning: {message}", 0)


def _report(message: str, code: int) -> int:
    """Print one line on standard error; it may name a column, whose escape sequences must not reach the terminal."""
    with suppress(OSError):
        print(f"wiseale: {one_line(message)}", file=sys.stderr, flush=True)
    return code


def _discard_output() -> None:
    """Send what is still to be printed nowhere: the interpreter would report at its exit that it cannot be."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

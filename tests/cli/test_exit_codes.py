"""Exit codes, which scripts rely on: 0 done, 2 the user's input, 130 interrupted, 141 nobody reads the output."""

import click
import numpy as np
import pytest
from tests.cli.commands import run

from wiseale import cli
from wiseale.errors import ConfigError, DivergenceError, TerminatedError


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (ConfigError("wrong"), 2),
        (DivergenceError("loss", float("nan"), 3), 2),
        (click.UsageError("wrong"), 2),
        (PermissionError(13, "Permission denied", "x"), 2),
        (KeyboardInterrupt(), 130),
        (click.Abort(), 130),
        (TerminatedError(), 143),
        (SystemExit(1), 141),
    ],
)
def test_every_end_has_its_code(raised, code, monkeypatch, capfd):
    """SystemExit is click's answer to a reader that has ended; ``capfd``, because output is then sent nowhere."""

    def fail(*_, **__):
        raise raised

    monkeypatch.setattr(cli.group, "main", fail)
    assert run(capfd, "info")[0] == code


def test_a_fault_of_ours_is_not_called_the_users(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(cli.group, "main", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main(["info"])


def test_a_command_that_succeeds_or_says_its_own_code(monkeypatch, capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    for answer, code in ((None, 0), (0, 0), (1, 1), (143, 143)):
        monkeypatch.setattr(cli.group, "main", lambda *_, answer=answer, **__: answer)
        assert run(capsys, "info")[0] == code

"""Fit an estimator; train until interrupted, resume and embed: run in an interpreter that resembles another system."""

import io
import signal
import sys
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np

from wiseale import AutoEncoder
from wiseale.cli import main
from wiseale.errors import RunError
from wiseale.runs.directory import RunDirectory

folder = Path(sys.argv[1])
table, run = folder / "table.npy", folder / "run"


def command(*arguments):
    """Exit code and standard output of a command."""
    output = io.StringIO()
    with redirect_stdout(output):
        try:
            main([*map(str, arguments)])
        except SystemExit as ended:
            return ended.code, output.getvalue()


def interrupt_after_a_checkpoint():
    while not any((run / "checkpoints").glob("[0-9]*")):
        time.sleep(0.002)
    signal.raise_signal(signal.SIGINT)


estimator = AutoEncoder(network="mlp:hidden=8", max_epochs=1, batch_size=16, random_state=0)
codes = estimator.fit(np.load(table)).transform(np.load(table))
assert codes.shape == (len(np.load(table)), 2)

run.mkdir()  # an empty folder may become the run directory
threading.Thread(target=interrupt_after_a_checkpoint).start()
code, output = command("train", "--config", folder / "settings.json", "--out", run)
assert code == 130, output
assert not RunDirectory(run).finished

with RunDirectory(run).locked():
    try:
        with RunDirectory(run).locked():
            raise AssertionError("the run directory was locked twice")
    except RunError:
        pass
code, output = command("resume", run)
assert code == 0, output
code, output = command("embed", run, table, "-o", folder / "codes.npz")
assert code == 0, output
code, output = command("info")
assert code == 0, output
print(output)

"""Threads of the command line sleep while they wait, as OpenMP itself reports."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="GNU's OpenMP, which prints its spin count")


def spin_count(**environment):
    code = "from wiseale.cli import main\nmain(['info'])"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_"))}
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=kept | {"OMP_DISPLAY_ENV": "verbose"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return next(line.split("'")[1] for line in process.stderr.splitlines() if "GOMP_SPINCOUNT" in line)


def test_waiting_threads_do_not_spin():
    assert spin_count() == "0"


def test_the_users_choice_is_kept():
    assert spin_count(OMP_WAIT_POLICY="ACTIVE") != "0"

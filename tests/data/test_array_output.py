"""Output files: after an error nothing is left."""

import errno
from pathlib import Path

import numpy as np
import pytest

from wiseale.data.array_output import ArrayOutput, Field
from wiseale.errors import DataError


def test_a_disk_that_fills_up_when_the_file_is_opened_leaves_nothing(tmp_path, monkeypatch):
    output = ArrayOutput(tmp_path / "codes.csv", [Field("codes", (2,), np.dtype(np.float32))])

    def full(self, *arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(DataError, match="No space left on device"), output:
        pass
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []

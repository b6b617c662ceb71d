"""A fingerprint tells apart whatever would train another model."""

import numpy as np

from wiseale.data.dataset import fingerprint
from wiseale.data.source import load_path


def test_the_type_the_shape_and_every_value_count():
    x = np.zeros((6, 4), np.float32)
    assert fingerprint(x) == fingerprint(x.copy()) == fingerprint(np.asfortranarray(x))
    last = x.copy()
    last[-1, -1] = 1
    others = [x.view(np.int32), x.reshape(4, 6), x.astype(np.float64), last]
    assert len({fingerprint(array) for array in (x, *others)}) == 5


def test_the_last_rows_of_a_large_array_count():
    x = np.zeros((5, 1 << 20))  # 40 MB
    before = fingerprint(x)
    x[-1, -1] = 1
    assert fingerprint(x) != before


def test_equal_cells_of_other_kinds_are_other_data(tmp_path):
    rows = "\n".join(f"{i / 7},{i % 3},{'xy'[i % 2]}" for i in range(30))
    (tmp_path / "x.csv").write_text(f"a,code,w\n{rows}\n")
    number, category = (load_path(f"{tmp_path}/x.csv:kinds=code:{kind}") for kind in ("number", "category"))
    assert np.array_equal(number.train.x, category.train.x)
    assert number.fingerprint != category.fingerprint

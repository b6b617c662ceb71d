"""``AutoEncoder.explore``: a page about an array, without a run."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from wiseale import AutoEncoder

X = np.random.default_rng(0).normal(size=(60, 4))


@pytest.fixture(scope="module")
def est():
    return AutoEncoder(latent_dim=2, network="mlp:hidden=8", max_epochs=2, random_state=0).fit(X)


def test_one_file_holds_the_rows_and_their_labels(est, tmp_path):
    est.explore(X, {"group": np.arange(60) % 3}, html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
    assert "group" in json.dumps(data)
    assert not re.search(r'(src|href)="https?://', page)


def test_tables_with_words_are_explored(tmp_path):
    table = pd.DataFrame(
        {"id": [f"row {i}" for i in range(60)], "mass": X[:, 0], "size": np.where(X[:, 0] > 0, "L", "S")}
    )
    kinds = {"id": "ignore"}
    est = AutoEncoder(network="mlp:hidden=8", max_epochs=1, column_kinds=kinds, random_state=0).fit(table)
    est.explore(table, html=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert '"mass"' in page
    assert "row 7" not in page  # a column that was not learned from


def test_labels_must_be_one_for_each_row(est, tmp_path):
    with pytest.raises(ValueError, match=r"'label'.*\(3,\).*60 rows"):
        est.explore(X, [0, 1, 2], html=tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()

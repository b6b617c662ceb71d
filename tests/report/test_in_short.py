"""The sentences that begin a run's report: their numbers are those of the evaluation, and nothing else is said."""

import re
from dataclasses import replace

import numpy as np
import pytest

from wiseale import registry
from wiseale.config import TrainConfig
from wiseale.data.defaults import make_dataset
from wiseale.evaluation.record import Evaluation
from wiseale.figures.words import data_in_words, objective_in_words
from wiseale.report.run import in_short, lead
from wiseale.runs.record import RunRecord
from wiseale.training.plan import resolve
from wiseale.training.settings import RunFacts

FACTS = RunFacts(1.0, 5, 270, 30, (3,), 100, "columns", "0")
DATASET = make_dataset(np.zeros((300, 3)), "X")
SETTINGS = resolve(TrainConfig(data="sales.csv", latent_dim=4, max_epochs=5), DATASET)
RECORD = RunRecord(replace(SETTINGS, data="/home/me/sales.csv:kinds=region:label"), FACTS)
COLUMNS = {
    "rmse:price (€)": 2.0,
    "rmse_baseline:price (€)": 4.0,
    "rmse:mass": 1234.0,
    "rmse_baseline:mass": 1234.0,
    "rmse:constant": 0.0,
    "rmse_baseline:constant": 0.0,
    "accuracy:kind": 0.9,
    "accuracy_baseline:kind": 0.5,
    "accuracy:sex": 0.7,
    "accuracy_baseline:sex": 0.6,
    "accuracy:station": 1.0,
    "accuracy_baseline:station": 1.0,
}


def evaluation(n=1000, **measures):
    return Evaluation(RECORD.settings.data, "held out", n, 0, measures)


def test_the_first_sentence_names_the_file_and_the_rows():
    said = lead(RECORD, evaluation(30))
    assert "each row of sales.csv into 4 numbers" in said
    assert "trained with WiSE-ALE on 270 rows, and measured on 30 rows held out of training." in said
    one = replace(FACTS, x_shape=(1, 8, 8), n_train=1)
    assert "on 1 image, and" in lead(RunRecord(replace(RECORD.settings, latent_dim=1), one), evaluation())
    other = replace(evaluation(), data="/home/me/more.csv", split="all rows")
    assert lead(RECORD, other).endswith("measured on 1,000 rows of more.csv.")


def test_columns_are_in_their_units_beside_what_needs_no_model():
    said = " ".join(in_short(RECORD, evaluation(**COLUMNS)))
    assert "price (€) 2 (4) and mass 1,234 (1,234)." in said
    assert "38% of the variance is explained" in said  # the median of 75 and 0 %
    assert "In 2 columns of categories, the level comes back right in 80% of the cells on average (55% if" in said
    assert "constant" not in said
    assert "station" not in said
    assert "few" not in said
    single = {"rmse:a": 1.0, "rmse_baseline:a": 2.0}
    assert 'the column "a" has a root mean squared error of 1 (2 if' in " ".join(in_short(RECORD, evaluation(**single)))


def test_of_many_columns_the_best_and_the_worst_are_named():
    many = {f"rmse:c{i}": float(i) for i in range(1, 9)} | {f"rmse_baseline:c{i}": 10.0 for i in range(1, 9)}
    said = " ".join(in_short(RECORD, evaluation(**many)))
    assert re.findall(r"c\d", said) == ["c1", "c2", "c7", "c8"]
    assert "the two best and the two worst of 8 columns" in said


@pytest.mark.parametrize(
    ("scaling", "shape", "said"),
    [
        ("global", (1, 50), "a mean squared error of 0.09, where 1 is the variance"),
        ("none", (1, 8, 8), "pixels are off by 0.3 "),
        ("none", (3,), "values are off by 0.3 "),
    ],
)
def test_values_without_columns(scaling, shape, said):
    record = RunRecord(RECORD.settings, replace(FACTS, standardized=scaling, x_shape=shape))
    assert said in in_short(record, evaluation(mse_at_mu=0.09))[0]


@pytest.mark.parametrize(
    ("active", "said"),
    [
        (4, "All 4 units of the code are used."),
        (3, "3 of 4 units of the code are used; the other one hardly varies from one code to the next."),
        (1, "1 of 4 units of the code is used; the other 3 hardly vary from one code to the next."),
    ],
)
def test_units_in_use(active, said):
    assert in_short(RECORD, evaluation(active_units=active, mutual_information=2.0)) == (said,)


def test_a_collapsed_run_has_the_note_on_collapse_instead():
    assert in_short(RECORD, evaluation(active_units=0, mutual_information=0.0)) == ()


def test_few_rows_are_said_to_be_few():
    assert in_short(RECORD, evaluation(1)) == ("1 row is few: other ones would give other numbers.",)


def test_every_objective_has_a_name_in_words():
    own = [name for name, target in registry.OBJECTIVES.items() if target.startswith("wiseale.")]
    titles = [objective_in_words(name) for name in own]
    assert len(set(titles)) == len(own)
    assert not set(titles) & set(own)
    words = objective_in_words("wise_ale:prior_weight=paper,estimator=mc")
    assert words == "WiSE-ALE (estimator=mc, prior_weight=paper)"
    assert objective_in_words("wise_ale:estimator=jensen,prior_weight=1.0") == "WiSE-ALE"


def test_data_in_words(tmp_path, monkeypatch):
    (tmp_path / "a:b=c.csv").write_text("")
    assert data_in_words(str(tmp_path / "a:b=c.csv")) == "a:b=c.csv"
    assert data_in_words("celeba:crop=178,folder=/home/me/portraits") == "celeba"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sine").mkdir()
    assert data_in_words("sine") == "sine"

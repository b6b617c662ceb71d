"""Differences between systems over the seeds of one comparison, against scipy's paired t-test."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from wiseale.config import TrainConfig
from wiseale.evaluation.record import Evaluation
from wiseale.explorer.manifest import measures_of
from wiseale.platform.json_files import sealed

ELBO = {"aevb": [-10.0, -11.5, -10.6], "wise_ale": [-9.0, -10.1, -9.9]}


def evaluated(path, **measures):
    """The path of a run that holds these measures."""
    path.mkdir(parents=True)
    record = Evaluation("sine", "test", 10, 0, measures, {}, {"reconstruction": list(measures)})
    (path / "evaluation.json").write_text(record.to_json())
    return path


@pytest.fixture
def comparison(tmp_path):
    systems = [{"name": name, "objective": name, "settings": {}} for name in ELBO]
    base = dataclasses.asdict(TrainConfig(data="sine"))
    request = {"base": base, "systems": systems, "seeds": 3, "evaluate_rows": 10}
    (tmp_path / "comparison.json").write_text(sealed(request))
    for name, values in ELBO.items():
        for seed, value in enumerate(values):
            evaluated(tmp_path / "runs" / name / f"seed-{seed}", elbo=value, psnr=None)
    return lambda system, seed: tmp_path / "runs" / system / f"seed-{seed}"


def test_a_difference_is_paired_by_seed_and_has_a_student_interval(comparison):
    (elbo,) = measures_of([comparison("aevb", 0), comparison("wise_ale", 0)])
    assert elbo.values == (-10.0, -9.0)
    _, difference = elbo.differences
    low, high = stats.ttest_rel(ELBO["wise_ale"], ELBO["aevb"]).confidence_interval(0.95)
    assert np.allclose((difference.mean, difference.half_width), ((low + high) / 2, (high - low) / 2), atol=1e-3)
    assert difference.n == 3


def test_seeds_of_one_system_and_runs_outside_a_comparison_have_no_difference(comparison, tmp_path):
    (elbo,) = measures_of([comparison("aevb", 0), comparison("aevb", 1)])
    assert elbo.differences == (None, None)
    (elbo,) = measures_of([comparison("aevb", 0), evaluated(tmp_path / "alone", elbo=-3.0)])
    assert elbo.values == (-10.0, -3.0)
    assert elbo.differences == (None, None)


def test_runs_that_were_not_evaluated_have_no_values(comparison, tmp_path):
    (elbo,) = measures_of([comparison("aevb", 0), None, tmp_path / "nothing"])
    assert elbo.values == (-10.0, None, None)

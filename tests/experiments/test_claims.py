import pytest

from wiseale import registry
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Estimate
from wiseale.experiments.paper.claims import Comparand, Evidence, judge, judge_inequalities
from wiseale.experiments.paper.reproduce import CELEBA, DataChoice
from wiseale.experiments.paper.scales import SCALES

MSE = Comparand("sine", "mse", s.WISE_ALE, s.AEVB)


def evidence(ours, theirs, smoke=False, measure="mse"):
    summary = {s.WISE_ALE.name: {measure: ours}, s.AEVB.name: {measure: theirs}}
    return Evidence({"sine": summary}, smoke)


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        (Estimate(1.0, 0.1, 3), Estimate(2.0, 0.1, 3), "held"),
        (Estimate(2.0, 0.1, 3), Estimate(1.0, 0.1, 3), "not held"),
        (Estimate(1.0, 0.6, 3), Estimate(2.0, 0.6, 3), "not decided"),
        (Estimate(1.0, 0.1, 2), Estimate(2.0, 0.1, 3), "not decided"),
        (Estimate(1.0, None, 1), Estimate(2.0, None, 1), "not decided"),
    ],
)
def test_held_needs_three_seeds_and_disjoint_intervals(ours, theirs, outcome):
    verdict = judge_inequalities("C1", "", evidence(ours, theirs), [MSE])
    assert verdict.outcome == outcome
    assert "1" in verdict.numbers


def test_nothing_is_decided_by_a_rehearsal_or_without_runs():
    clear = (Estimate(1.0, 0.1, 3), Estimate(2.0, 0.1, 3))
    assert judge_inequalities("C1", "", evidence(*clear, smoke=True), [MSE]).outcome == "not decided"
    assert judge_inequalities("C1", "", Evidence({}), [MSE]).outcome == "not decided"


def test_more_is_better_with_a_minus():
    wanted = [Comparand("sine", "-elbo", s.WISE_ALE, s.AEVB)]
    better = evidence(Estimate(-10.0, 0.1, 3), Estimate(-20.0, 0.1, 3), measure="elbo")
    assert judge_inequalities("C2", "", better, wanted).outcome == "held"


def test_one_reversed_inequality_sinks_the_claim():
    summary = {
        s.WISE_ALE.name: {"mse": Estimate(1.0, 0.1, 3)},
        s.AEVB.name: {"mse": Estimate(2.0, 0.1, 3)},
        s.BETA_VAE.name: {"mse": Estimate(0.5, 0.1, 3)},
    }
    wanted = [MSE, Comparand("sine", "mse", s.WISE_ALE, s.BETA_VAE)]
    assert judge_inequalities("C1", "", Evidence({"sine": summary}), wanted).outcome == "not held"


def test_every_claim_is_judged():
    assert {verdict.claim for verdict in judge(Evidence({}))} == {f"C{n}" for n in range(1, 12)}


@pytest.mark.parametrize("name", registry.EXPERIMENTS)
@pytest.mark.parametrize("scale", SCALES)
def test_plans_are_complete_and_their_folders_distinct(name, scale, tmp_path):
    made = registry.lookup("experiment", name).comparisons(scale, tmp_path)
    paths = [job.out for comparison in made for job in comparison.jobs()]
    assert len(set(paths)) == len(paths)
    names = {system.name for comparison in made for system in comparison.systems}
    assert {s.WISE_ALE.name, s.WISE_ALE_AS_WRITTEN.name, s.BETA_CONTROL.name, s.AEVB.name} <= names
    if scale != "smoke":
        assert made[0].seeds >= 3


def test_portraits_stand_in_for_celeba(tmp_path):
    nothing = CELEBA.choose_data(tmp_path)
    assert nothing.skip
    assert "neither CelebA nor portraits" in nothing.note
    (tmp_path / "portraits").mkdir()
    found = CELEBA.choose_data(tmp_path)
    assert (found.spec, found.skip) == (f"celeba:folder={tmp_path / 'portraits'}", False)
    assert "stand in" in found.note
    (tmp_path / "celeba").mkdir()
    assert CELEBA.choose_data(tmp_path) == DataChoice()

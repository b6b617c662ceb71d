import numpy as np
import pytest
import torch
from tests.evaluation.models import Decoder, case_of, ignore

from wiseale.evaluation.factors import (
    disentanglement,
    disentanglement_and_completeness,
    equal_counts,
    known_factors,
    mean_gap,
    mutual_information,
    single_unit_scores,
)
from wiseale.posterior import Posterior

N = 1500
SCORES = ("mig", "sap", "dci_disentanglement", "dci_completeness", "dci_informativeness")


@pytest.fixture(scope="module")
def world():
    """Factors as sine waves and digits have them: two numbers, an angle and a name."""
    generator = np.random.default_rng(0)
    return {
        "size": generator.uniform(0, 2, N),
        "speed": generator.normal(size=N),
        "angle": generator.uniform(0, 2 * np.pi, N),
        "shape": np.array(["ring", "disc", "cross"])[generator.integers(3, size=N)],
    }


def code_per_factor(world):
    """A perfect representation: one unit per factor."""
    _, shape = np.unique(world["shape"], return_inverse=True)
    return np.stack((world["size"], world["speed"], world["angle"], shape), 1).astype(float)


def measured(codes, world):
    model = Decoder(lambda z: z, (codes.shape[1],), codes.shape[1])
    posterior = Posterior(torch.from_numpy(codes).float())
    return disentanglement(case_of(model, codes, posterior, world, {"angle": 2 * np.pi}), ignore)


@pytest.fixture(scope="module")
def perfect(world):
    return measured(code_per_factor(world), world).measures


def test_perfect_codes(perfect):
    assert all(perfect[name] > 0.9 for name in SCORES), perfect
    assert {f"dci_informativeness_{name}" for name in ("size", "speed", "angle", "shape")} <= set(perfect)


def test_order_and_monotone_change_of_the_units_do_not_matter_to_mig(world, perfect):
    codes = code_per_factor(world)[:, [2, 0, 3, 1]]
    changed = measured(np.stack((-codes[:, 0], codes[:, 1] ** 3, 5 * codes[:, 2], np.exp(codes[:, 3])), 1), world)
    assert changed.measures["mig"] == pytest.approx(perfect["mig"], abs=0.01)
    assert changed.measures["dci_disentanglement"] == pytest.approx(perfect["dci_disentanglement"], abs=0.02)
    permuted = measured(codes, world).measures
    for name in SCORES:
        assert permuted[name] == pytest.approx(perfect[name], abs=0.02)


def test_random_codes(world):
    found = measured(np.random.default_rng(1).normal(size=(N, 4)), world).measures
    assert all(found[name] < 0.05 for name in ("mig", "sap", "dci_informativeness")), found
    assert found["dci_disentanglement"] < 0.1
    assert found["dci_completeness"] < 0.1


def test_rotated_codes_inform_as_well_but_are_entangled(world, perfect):
    codes = code_per_factor(world)
    codes = (codes - codes.mean(0)) / codes.std(0)
    rotation = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    found = measured(codes @ rotation, world).measures
    for name in ("mig", "sap", "dci_disentanglement", "dci_completeness"):
        assert found[name] < 0.35 < perfect[name]
    assert found["dci_informativeness"] > 0.3


def test_two_units_with_the_same_content_leave_no_gap(world):
    factors = known_factors(world, {"angle": 2 * np.pi})
    twice = np.repeat(code_per_factor(world), 2, axis=1)
    assert mean_gap(mutual_information(twice, factors)) == pytest.approx(0, abs=1e-12)
    assert mean_gap(single_unit_scores(twice, factors)) == pytest.approx(0, abs=1e-12)


def test_mutual_information_by_hand():
    # Two fair bits: a unit equal to one of them knows all of it and nothing of the other.
    bits = {"a": np.tile([0, 0, 1, 1], 50), "b": np.tile([0, 1, 0, 1], 50)}
    factors = known_factors(bits, {})
    known = mutual_information(np.stack((bits["a"], bits["b"], bits["a"] ^ bits["b"]), 1).astype(float), factors)
    assert known == pytest.approx(np.array([[1, 0, 0], [0, 1, 0]]), abs=1e-12)
    # A unit that tells three quarters of the rows: I = H(b) − ½ log 2 for b known exactly in half of the rows.
    half = np.where(bits["a"] == 1, bits["b"], 7).astype(float)
    assert mutual_information(half[:, None], factors)[1, 0] == pytest.approx(0.5)


def test_sap_of_a_line_by_hand():
    x = np.linspace(-1, 1, 401)
    (factor,) = known_factors({"x": x}, {})
    noise = np.cos(60 * np.pi * x) - np.cos(60 * np.pi * x).mean()
    line, curve = 3 * x - 1, 3 * x + 2 * noise
    expected = 9 * x.var() / (9 * x.var() + 4 * noise.var())
    assert single_unit_scores(np.stack((line, curve), 1), [factor])[0] == pytest.approx([1, expected], abs=1e-3)


def test_dci_of_importance_matrices_by_hand():
    assert disentanglement_and_completeness(np.eye(3)) == pytest.approx((1, 1))
    assert disentanglement_and_completeness(np.full((3, 4), 0.25)) == pytest.approx((0, 0), abs=1e-12)
    # Both factors in one unit: complete, not disentangled; the idle unit has no weight.
    assert disentanglement_and_completeness(np.array([[1.0, 0], [1, 0]])) == pytest.approx((0, 1))
    # One factor spread over two units that hold nothing else: disentangled, half as complete as could be.
    spread = np.array([[0.5, 0.5, 0, 0], [0, 0, 1, 0]])
    assert disentanglement_and_completeness(spread) == pytest.approx((1, 0.75))


def test_an_angle_is_known_only_up_to_full_turns(world):
    turned = world["angle"] + 2 * np.pi * np.random.default_rng(2).integers(-3, 4, N)
    plain, moved = (known_factors({"angle": values}, {"angle": 2 * np.pi})[0] for values in (world["angle"], turned))
    assert plain.kind == "circular"
    assert (plain.bins == moved.bins).mean() > 0.999  # but for rounding at the edges
    assert set(plain.bins) == set(range(20))
    # A straight line through an angle would see nothing in its cosine; bins do.
    cosine = single_unit_scores(np.cos(world["angle"])[:, None], [plain])
    assert cosine[0, 0] > 0.3


def test_kinds_of_factors():
    n = 300
    factors = known_factors(
        {
            "number": np.linspace(0, 1, n),
            "age": np.arange(n) % 90,
            "digit": np.arange(n) % 10,
            "level": (np.arange(n) % 4) / 4,
            "flag": np.arange(n) % 2 == 0,
            "name": np.array(["a", "b"])[np.arange(n) % 2],
            "object": np.array(["a", "b"], object)[np.arange(n) % 2],
            "id": np.array([f"row {i}" for i in range(n)]),
            "constant": np.ones(n),
            "gap": np.where(np.arange(n) == 3, np.nan, np.arange(n)),
        },
        {},
    )
    classes = dict.fromkeys(("digit", "level", "flag", "name", "object"), "classes")
    assert {factor.name: factor.kind for factor in factors} == {"number": "continuous", "age": "continuous"} | classes


def test_bins_hold_equal_counts_and_ties_share_one():
    assert np.bincount(equal_counts(np.random.default_rng(0).normal(size=1000))).tolist() == [50] * 20
    assert set(equal_counts(np.full(30, 2.0))) == {19}


@pytest.mark.parametrize(
    ("codes", "factors", "reason"),
    [
        (np.ones((500, 3)), {}, "2 known factors that vary, the data has 0"),
        (np.ones((500, 3)), {"label": np.arange(500) % 3}, "the data has 1"),
        (np.ones((500, 1)), {"a": np.arange(500) % 3, "b": np.arange(500)}, "at least 2 units"),
        (np.ones((399, 3)), {"a": np.arange(399) % 3, "b": np.arange(399)}, "at least 400 rows, there are 399"),
    ],
)
def test_why_not(codes, factors, reason):
    found = measured(codes, factors)
    assert set(found.measures.values()) == {None}
    assert all(reason in why for why in found.reasons.values())


def test_units_that_never_change_are_harmless(world):
    codes = np.concatenate((code_per_factor(world), np.full((N, 2), 0.25)), 1)
    found = measured(codes, world).measures
    assert all(found[name] > 0.9 for name in SCORES)
    idle = measured(np.full((N, 2), 0.25), world).measures
    assert [idle[name] for name in SCORES] == pytest.approx([0] * 5, abs=1e-12)


def noisy_bits(sigma, n=4000):
    """Two fair bits, each the mean ±1 of a unit of its own, with posteriors of width sigma."""
    bits = np.random.default_rng(3).integers(2, size=(n, 2))
    mu = torch.from_numpy(2.0 * bits - 1).float()
    model = Decoder(lambda z: z, (2,), 2)
    factors = {"a": bits[:, 0], "b": bits[:, 1]}
    return disentanglement(case_of(model, mu.numpy(), Posterior(mu, torch.full_like(mu, sigma)), factors, {}), ignore)


@pytest.mark.parametrize("sigma", [0.1, 0.7, 1.0, 2.0])
def test_sampled_mig_is_the_information_of_a_noisy_channel(sigma):
    """I(bit; ±1 + sigma·noise) by quadrature; on the means alone every bit is known."""
    z = np.linspace(-12, 12, 4801)
    given_one = np.exp(-0.5 * ((z - 1) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    log_ratio = np.log(2) - np.logaddexp(0, -2 * z / sigma**2)  # log p(z|1)/p(z)
    information = np.trapezoid(given_one * log_ratio, z) / np.log(2)
    found = noisy_bits(sigma).measures
    assert found["mig_sampled"] == pytest.approx(information, abs=0.04)
    assert found["mig"] == pytest.approx(1, abs=0.01)


def test_a_deterministic_encoder_has_no_sampled_mig(world):
    codes = code_per_factor(world)
    model = Decoder(lambda z: z, (4,), 4)
    model.stochastic = False
    found = disentanglement(case_of(model, codes, Posterior(torch.from_numpy(codes).float()), world, {}), ignore)
    assert found.measures["mig_sampled"] is None
    assert "deterministic" in found.reasons["mig_sampled"]


def test_factors_that_do_not_vary_among_the_rows_or_bins_measured_are_left_out(world):
    """A flag of one row in 8,000, a number that is nearly always 0, an angle that stays within one bin."""
    generator = np.random.default_rng(0)
    n = 8000
    size, speed = generator.uniform(0, 2, n), generator.normal(size=n)
    rare = np.zeros(n, bool)
    mostly = np.where(generator.uniform(size=n) < 0.03, generator.uniform(1, 2, n), 0.0)
    still = generator.uniform(0.01, 0.02, n)
    codes = np.stack((size, speed), 1)
    expected = measured(codes, {"size": size, "speed": speed}).measures
    for row in range(6):  # in some order the row is drawn, in others not
        rare[:] = False
        rare[row] = True
        found = measured(codes, {"size": size, "speed": speed, "mostly": mostly, "angle": still, "rare": rare}).measures
        assert all(np.isfinite(found[name]) for name in SCORES)
    found = measured(codes, {"size": size, "speed": speed, "mostly": mostly, "angle": still}).measures
    assert {name: found[name] for name in SCORES} == {name: expected[name] for name in SCORES}
    with_one = measured(codes, {"size": size, "mostly": mostly})
    assert set(with_one.measures.values()) == {None}

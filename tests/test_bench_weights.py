"""The benchmark of weights on people's own data: what its table says of kept measurements."""

from bench.quality_rows import Row
from bench.weights import CONFIGURATIONS, beside_smaller, compared, fill_in, short_table, table

from wiseale.objectives import make_objective


def rows(configuration, errors, elbo=-1.0):
    return [
        Row("wine", 2, seed, configuration, mse, elbo - mse, 2, None, 0.1 * mse, 1.0, 9, 3, "{}", "0.1", "c0ffee")
        for seed, mse in enumerate(errors)
    ]


def test_both_systems_are_measured_at_every_weight():
    made = [make_objective(settings["objective"]) for settings in CONFIGURATIONS.values()]
    weights = [objective.effective_weight(64, 1000) for objective in made]
    assert weights[:10:2] == weights[1:10:2] == [0.25, 1, 4, 8, 16]
    assert weights[10:] == [4, 8, 16]
    assert [settings["prior_warmup"] for settings in list(CONFIGURATIONS.values())[10:]] == [50, 50, 50]
    assert [type(objective).__name__ for objective in made[:2]] == ["WiseAle", "BetaVae"]


def test_equal_weights_stand_beside_each_other():
    kept = rows("wise_ale:prior_weight=4", (1.0, 1.1, 0.9)) + rows("beta_vae:beta=4", (3.0, 3.1, 2.9))
    kept += rows("wise_ale:prior_weight=1", (1.0,)) + rows("beta_vae:beta=1", (1.0, 1.2, 1.1))
    kept += rows("wise_ale:prior_weight=16", (1.0, 1.1, 0.9)) + rows("beta_vae:beta=16, KL warm-up", (2.0,))
    made = table("weights", compared(kept))
    assert [line[:5] for line in made.rows] == [
        ("wine", 2, "1", "AEVB", "1, 3"),
        ("wine", 2, "4", "β = 4", "3, 3"),
        ("wine", 2, "16", "β = 16, KL warm-up", "3, 1"),
    ]
    assert made.rows[0][6::2] == ("-", "-", "-")
    assert made.rows[1][5] == "1 / 3"
    assert made.rows[1][6].startswith("-2 [")
    assert made.rows[1][10].startswith("2 [")
    assert short_table("weights", compared(kept)).rows[1][5:] == ("1 / 3 *", "0.1 / 0.3 *", "-2 / -4 *", "2 / 2")
    assert short_table("weights", compared(kept)).rows[0][5] == "1 / 1.1"


def test_a_weight_stands_beside_the_next_smaller_beta():
    kept = rows("wise_ale:prior_weight=16", (1.0, 1.1, 0.9)) + rows("beta_vae:beta=8", (3.0, 3.1, 2.9))
    kept += rows("wise_ale:prior_weight=4", (1.0,)) + rows("beta_vae:beta=1", (1.0,)) + rows("beta_vae:beta=16", (9.0,))
    found = [(pair.weight, pair.rival) for pair in beside_smaller(kept)]
    assert found == [("4", "AEVB"), ("16", "β = 8")]


def test_the_page_shows_a_rival_with_its_warm_up():
    kept = rows("wise_ale:prior_weight=4", (1.0,)) + rows("beta_vae:beta=4", (3.0,))
    pairs = compared(kept + rows("beta_vae:beta=4, KL warm-up", (2.0,)))
    assert [line[3] for line in short_table("weights", pairs).rows] == ["β = 4, KL warm-up"]
    assert len(table("weights", pairs).rows) == 2


def test_the_page_takes_the_table():
    page = "before\n<!-- own data -->\nstale\n<!-- end -->\nafter <!-- end -->\n"
    made = short_table("weights", compared(rows("wise_ale:prior_weight=4", (1.0,)) + rows("beta_vae:beta=4", (3.0,))))
    filled = fill_in(page, [made])
    assert "stale" not in filled
    assert "| wine | 2 | 4 | β = 4 | 1, 1 | 1 / 3 |" in filled
    assert filled.endswith("<!-- end -->\nafter <!-- end -->\n")
    assert fill_in(filled, [made]) == filled

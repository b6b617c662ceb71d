"""Rows of runs: what they keep, how they merge, and that different conditions are never averaged."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from docs.pages.__main__ import rebuild
from docs.pages.choosing import fill_in, table_of
from docs.pages.figure_arrays import FigureArrays, SystemArrays, collect_arrays
from docs.pages.figures import sweep_points
from docs.pages.kept import Curve, read_curves, write_curves
from tests.cli.commands import run
from tests.paper.rows import PAPER, SMALL, both, row, seeds

from wiseale.config import SCIENCE
from wiseale.errors import RunError
from wiseale.experiments import systems as s
from wiseale.experiments.comparison import Result
from wiseale.experiments.intervals import difference_interval
from wiseale.paper import TIME_PER_STEP
from wiseale.paper.claims import Claim
from wiseale.paper.relations import Below
from wiseale.paper.rows import conditions_of, evidence_of, merge, read_rows, values_of, write_rows
from wiseale.paper.sweep import compare_neighbours, compare_weights
from wiseale.training.loop import EpochRecord

OTHER = {"max_grad_norm": 1.0, "patience": 5, "precision": "bf16", "init_from": "runs/first"}


def test_rows_survive_the_file(tmp_path):
    rows = merge([row(s.AEVB, 0, mse=0.25), row(s.WISE_ALE, 1, SMALL, mse=1 / 3, elbo=-2.0)])
    write_rows(tmp_path / "runs.csv", rows)
    found = read_rows(tmp_path / "runs.csv")
    assert [replace(one, measures={}) for one in found] == [replace(one, measures={}) for one in rows]
    assert [dict(one.measures) for one in found] == [
        {name: pytest.approx(value, rel=1e-8) for name, value in one.measures.items()} for one in rows
    ]
    write_rows(tmp_path / "again.csv", found)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "runs.csv").read_bytes()


def test_a_damaged_file_is_named_by_line(tmp_path):
    path = tmp_path / "runs.csv"
    write_rows(path, [row(s.AEVB, 0, mse=0.25)])
    path.write_text(path.read_text().replace("200000", "many"))
    with pytest.raises(RunError, match="line 2"):
        read_rows(path)
    path.write_text("system,seed\n")
    with pytest.raises(RunError, match="no column 'experiment'"):
        read_rows(path)


def test_a_run_made_again_replaces_itself_and_no_other():
    first = seeds(s.AEVB, (1.0, 2.0)) + seeds(s.AEVB, (5.0, 6.0), SMALL)
    merged = merge(first, [row(s.AEVB, 1, mse=3.0)])
    assert values_of(merged, PAPER) == {"AEVB": {"mse": [1.0, 3.0]}}
    assert values_of(merged, SMALL) == {"AEVB": {"mse": [5.0, 6.0]}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ""),
        ({"held_out": 0.05, "held_out_most": None, "max_grad_norm": None, "patience": None, "precision": "fp32"}, ""),
        ({"objective": "aevb", "prior_warmup": 5.0, "seed": 1, "threads": 2}, ""),
        ({"held_out": 0.05, "held_out_most": PAPER.rows // 20}, ""),  # as many rows as without a largest number
        ({"held_out": 0.05, "held_out_most": 7}, "7 rows held out"),
        ({"held_out": 0.1}, f"{PAPER.rows // 10} rows held out"),
        ({"init_from": "other-model"}, "init_from=other-model"),
        *(({name: value}, f"{name}={value}") for name, value in OTHER.items()),
        (OTHER, ", ".join(f"{name}={value}" for name, value in OTHER.items())),
    ],
)
def test_conditions_have_the_settings_that_only_the_config_holds(settings, expected, tmp_path):
    plain = row(s.AEVB, 0, mse=1.0)
    write_rows(tmp_path / "runs.csv", [plain, replace(plain, seed=1, config=json.dumps(settings))])
    usual, found = read_rows(tmp_path / "runs.csv")
    assert (usual.condition, usual.condition.key) == (PAPER, PAPER.key)
    assert found.condition == replace(PAPER, further=expected)
    assert (found.condition.key == PAPER.key) == (not expected)
    assert expected in str(found.condition)


def test_every_setting_that_decides_a_result_tells_rows_apart():
    """A new training option that changes results must be added to a condition, or be one of the system's own."""
    condition = {"data", "latent_dim", "network", "likelihood", "batch_size", "max_epochs", "lr", "lr_schedule"}
    further = {"held_out", "held_out_most", *OTHER}
    of_the_system = {"objective", "prior_warmup", "seed"}
    filled_in = {"columns", "missing", "unseen", "recipe", "watch_every"}  # part of the data, or of other settings
    parts = (condition, further, of_the_system, filled_in)
    assert sorted(SCIENCE) == sorted(name for part in parts for name in part)


def test_damaged_curves_are_named_by_line(tmp_path):
    path = tmp_path / "curves.csv"
    write_curves(path, [Curve("key", "AEVB", 0, (EpochRecord(1, 0, 0.0, 1.0, {"elbo": -2.5}, None),))])
    (curve,) = read_curves(path)
    assert curve.epochs[0].train == {"elbo": -2.5}
    path.write_text(path.read_text().replace("-2.5", "much"))
    with pytest.raises(RunError, match=r"curves\.csv, line 2 is not an epoch of a curve"):
        read_curves(path)


@pytest.mark.parametrize("config", ["[1]", "{", "none"])
def test_a_damaged_config_is_named_by_line(config, tmp_path):
    write_rows(tmp_path / "runs.csv", [replace(row(s.AEVB, 0, mse=0.25), config=config)])
    with pytest.raises(RunError, match="line 2"):
        read_rows(tmp_path / "runs.csv")


@pytest.mark.parametrize(
    "change",
    [
        *({"rows": 20_000}, {"epochs": 10}, {"network": "paper_sine:init=torch", "init": "torch"}, {"batch_size": 32}),
        *({"n_eval": 2000}, {"data_fingerprint": "xyz"}, {"lr": 1e-3}, {"latent_dim": 2}, {"control": "init-torch"}),
        {"further": "precision=bf16"},
    ],
)
def test_conditions_are_never_averaged(change):
    """Three seeds here and two elsewhere: the elsewhere must change nothing."""
    other = replace(PAPER, **change)
    rows = merge(seeds(s.AEVB, (1.0, 1.0, 1.0)), seeds(s.AEVB, (9.0, 9.0), other))
    assert evidence_of(rows, "paper").of("sine")["AEVB"]["mse"] == [1.0, 1.0, 1.0]
    assert conditions_of(rows, "paper")["sine"][0] == PAPER


@pytest.mark.parametrize(("timed", "expected"), [(3, "held"), (2, "not decided"), (0, "not held")])
def test_time_is_judged_on_the_runs_made_for_it(timed, expected):
    """The experiment's own runs, which say the opposite here, count only where no run was made to be timed."""
    statement = Below("sine", "cpu_seconds_per_thousand_rows", s.WISE_ALE, s.WAE_GAN, control=TIME_PER_STEP)
    short = replace(PAPER, epochs=1, control=TIME_PER_STEP)
    rows = _timed(s.WISE_ALE, 9.0, PAPER, 3) + _timed(s.WAE_GAN, 3.0, PAPER, 3)
    rows += _timed(s.WISE_ALE, 1.0, short, timed) + _timed(s.WAE_GAN, 2.0, short, timed)
    assert Claim("C10", "", (statement,)).judge(evidence_of(rows, "paper")).outcome == expected


def _timed(system, seconds, condition, count):
    return [row(system, i, condition, cpu_seconds_per_thousand_rows=seconds + 0.01 * i) for i in range(count)]


def test_one_name_for_two_settings_is_refused():
    rows = [row(s.AEVB, 0, mse=1.0), replace(row(s.AEVB, 1, mse=1.0), prior_warmup=5.0)]
    with pytest.raises(RunError, match="two settings"):
        values_of(rows, PAPER)


def test_the_sweep_has_every_run_of_the_systems_at_rising_weights():
    rows = both(s.sweep_of_wise_ale("4"), [20, 22], [1, 2]) + both(s.WISE_ALE, [10], [3]) + both(s.AEVB, [9], [4])
    rows += both(s.AEVB_WARM_UP, [5], [6])
    rows += [row(s.AEVB, 7, reconstruction=8.0), row(s.AEVB, 8, kl_aggregate_mc=1.0)]  # a null measure is left out
    ours, theirs, warmed_up = sweep_points(rows, PAPER).values()
    assert list(ours.items()) == [("1", [(3, 10)]), ("4", [(1, 20), (2, 22)])]
    assert theirs == {"1": [(4, 9)]}
    assert warmed_up == {"1": [(6, 5)]}


def test_equal_weights_are_compared_in_both_measures():
    near = (0.0, 0.01, -0.01)
    rows = both(s.WISE_ALE, [10 + e for e in near], [1 + e for e in near])
    rows += both(s.AEVB, [20 + e for e in near], [2 + e for e in near])
    rows += both(s.AEVB_WARM_UP, [5 + e for e in near], [2 + e for e in near])
    rows += both(s.sweep_of_wise_ale("4"), [20 + e for e in near], [1 + e for e in near])
    rows += both(s.sweep_of_beta_vae("4"), [90 + e for e in near], [0 + e for e in near])
    found = compare_weights(rows, PAPER)
    assert [(one.weight, one.rival) for one in found] == [(1, "AEVB"), (4, "β-VAE, β = 4"), (1, "AEVB, KL warm-up")]
    assert [one.verdict for one in found] == [
        "WiSE-ALE better in both",
        "WiSE-ALE better in reconstruction, β-VAE better in aggregate KL",
        "β-VAE better in reconstruction, WiSE-ALE better in aggregate KL",
    ]
    assert found[0].differences[0].value == pytest.approx(-10)
    (few,) = compare_weights(both(s.WISE_ALE, (1, 2), (1, 2)) + both(s.AEVB, (1, 2, 3), (1, 2, 3)), PAPER)
    assert few.verdict == "not decided: 2 and 3 of 3 seeds"


def test_above_weight_1_the_next_smaller_beta_with_runs_is_beside():
    near = (0.0, 0.01, -0.01)

    def at(system, reconstruction, kl):
        return both(system, [reconstruction + e for e in near], [kl + e for e in near])

    rows = at(s.WISE_ALE, 10, 3) + at(s.AEVB, 10, 3) + at(s.AEVB_WARM_UP, 13, 3)
    rows += at(s.sweep_of_wise_ale("4"), 12, 2) + at(s.sweep_of_wise_ale("16"), 20, 0.5)
    rows += at(s.sweep_of_beta_vae("4"), 30, 1) + at(s.sweep_of_beta_vae("1/4"), 9, 9)
    found = compare_neighbours(rows, PAPER)
    rivals = [(4, "AEVB"), (4, "AEVB, KL warm-up"), (16, "β-VAE, β = 4")]
    assert [(one.weight, one.rival) for one in found] == rivals
    verdicts = ["neither is better in both", "WiSE-ALE better in both", "WiSE-ALE better in both"]
    assert [one.verdict_in_both for one in found] == verdicts
    # Six intervals that hold jointly, whatever other weights have runs.
    assert found[2].differences[0] == difference_interval([20 + e for e in near], [30 + e for e in near], 1 - 0.05 / 6)
    assert compare_neighbours(at(s.WISE_ALE, 1, 1) + at(s.sweep_of_wise_ale("4"), 1, 1), PAPER) == []


def test_collapsed_systems_are_named():
    """They match the prior exactly, which is no merit."""
    near = (0.0, 0.01, -0.01)
    rows = both(s.sweep_of_wise_ale("4"), [20 + e for e in near], [1 + e for e in near])
    for seed, (units, nats) in enumerate([(0, 0.0), (2, 0.05), (2, 3.0)]):
        measures = {"active_units": units, "mutual_information": nats, "reconstruction": 90 + near[seed]}
        rows.append(row(s.sweep_of_beta_vae("4"), seed, kl_aggregate_mc=0.1 * near[seed], **measures))
    (found,) = compare_weights(rows, PAPER)
    start = "WiSE-ALE better in reconstruction, β-VAE better in aggregate KL"
    assert found.verdict == f"{start} (β-VAE collapsed in 2 of 3 seeds)"
    for one in rows[:3]:
        one.measures.update(active_units=0.0)
    (found,) = compare_weights(rows, PAPER)
    assert found.verdict.endswith("(WiSE-ALE collapsed in 3 of 3 seeds, β-VAE collapsed in 2 of 3 seeds)")


def test_two_settings_under_one_name_are_not_pooled():
    """AEVB with two lengths of warm-up is no AEVB with six seeds."""
    near = (1.0, 1.1, 0.9)
    rows = both(s.WISE_ALE, near, near) + both(s.AEVB_WARM_UP, near, near)
    longer = [replace(one, prior_warmup=10.0) for one in both(s.AEVB_WARM_UP, near, near)]
    with pytest.raises(RunError, match="names two settings"):
        compare_weights(rows + longer, PAPER)
    named = [replace(one, system="AEVB, longer warm-up") for one in longer]
    assert [len(one.theirs[0]) for one in compare_weights(rows + named, PAPER)] == [3, 3]


def test_other_estimators_and_other_conditions_stay_out_of_the_sweep():
    rows = both(s.ESTIMATORS[0], (1, 2, 3), (1, 2, 3)) + both(s.AEVB, (1, 2, 3), (1, 2, 3))
    rows += [replace(one, condition=SMALL) for one in both(s.WISE_ALE, (1, 2, 3), (1, 2, 3))]
    assert compare_weights(rows, PAPER) == []


PAGE = "before\n\n<!-- results: weights sine -->\nstale\n<!-- end -->\n\nafter <!-- a remark -->\n"


def test_tables_of_a_page_are_replaced_as_a_whole():
    rows = both(s.WISE_ALE, (1, 2, 3), (1, 2, 3)) + both(s.AEVB, (1, 2, 3), (1, 2, 3))
    filled = fill_in(PAGE, rows)
    assert filled.startswith("before\n\n<!-- results: weights sine -->\n")
    assert filled.endswith("<!-- end -->\n\nafter <!-- a remark -->\n")
    assert "stale" not in filled
    assert "| 1 | AEVB | 2.000 / 2.000 |" in filled
    assert fill_in(filled, rows) == filled
    assert "Not measured yet" in fill_in(filled, [])


def test_the_kept_pages_are_those_of_the_kept_rows(tmp_path):
    """`make results` has been run since rows, tables or wording changed."""
    docs = Path(__file__).parents[2] / "docs"
    shutil.copytree(docs / "results", tmp_path / "results")
    for page in ("choosing.md", "measures.md"):
        shutil.copy(docs / page, tmp_path)
    rebuild(tmp_path, [])
    for page in ("results/index.md", "choosing.md", "measures.md"):
        assert (tmp_path / page).read_text(encoding="utf-8") == (docs / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (PAGE.replace("<!-- end -->", ""), "'<!-- results: weights sine -->' has no end"),
        (PAGE.replace("<!-- end -->", "by hand") + PAGE, "'<!-- results: weights sine -->' has no end"),
        (PAGE.replace("weights", "init-torch"), "no table 'init-torch' of 'sine'"),
        (PAGE.replace("sine", "waves"), "no table 'weights' of 'waves'"),
    ],
)
def test_a_page_with_a_wrong_mark_is_refused(page, told):
    with pytest.raises(RunError, match=re.escape(told)):
        fill_in(page, [])


TORCH = replace(PAPER, control="init-torch", network="paper_sine:init=torch", init="torch")
LEARNED = replace(PAPER, control="learned-noise", likelihood="gaussian:x_sigma=learned")


@pytest.mark.parametrize(
    ("table", "control", "caption"),
    [
        ("init", TORCH, "Glorot weights / torch weights."),
        ("noise", LEARNED, "Noise fixed at 1 / learned noise."),
    ],
)
def test_a_control_stands_beside_runs_under_otherwise_equal_conditions(table, control, caption):
    short = replace(control, rows=1000, epochs=5, n_eval=100)
    rows = seeds(s.AEVB, (1.0, 1.1, 0.9)) + seeds(s.AEVB, (3.0, 3.1, 2.9, 3.0), short)
    assert "Not measured yet" in table_of(table, "sine", rows, "paper")[-1].text
    found = table_of(table, "sine", rows + seeds(s.AEVB, (2.0, 2.1, 1.9), control), "paper")[-1]
    assert found.caption.startswith(caption)
    assert found.rows[0][1] == "1.00 ± 0.25 / 2.00 ± 0.25"
    assert found.rows[0][2].startswith("-1 [")
    assert found.rows[0][3:] == ("- / -",) * 4
    one = table_of(table, "sine", rows + seeds(s.AEVB, (2.0,), control), "paper")[-1]
    assert one.rows[0][1:3] == ("1.00 ± 0.25 / 2", "fewer than 3 seeds")


def test_codes_are_compared_with_and_without_a_warm_up():
    rows = [row(s.WISE_ALE, n, separation=0.9 + e, kl_aggregate_mc=1 + e) for n, e in enumerate((0, 0.01, -0.01))]
    rows += [row(s.AEVB, n, separation=0.5 + e, kl_aggregate_mc=1 + e) for n, e in enumerate((0, 0.01, -0.01))]
    rows += [row(s.AEVB_WARM_UP, n, separation=0.8) for n in range(2)]
    table = table_of("codes", "sine", rows, "paper")[-1]
    assert table.columns[1:] == ("WiSE-ALE, weight 1", "AEVB", "difference", "AEVB, KL warm-up", "difference")
    kl, separation = table.rows
    assert (kl[0], *kl[4:]) == ("aggregate KL", "-", "fewer than 3 seeds")
    expected = difference_interval((0.9, 0.91, 0.89), (0.5, 0.51, 0.49), 1 - 0.05 / 4)
    assert separation[3] == str(expected)
    assert separation[5] == "fewer than 3 seeds"
    assert "Not measured yet" in table_of("codes", "sine", rows[:3], "paper")[-1].text


def test_a_table_of_another_kind_is_refused():
    with pytest.raises(RunError, match="no table 'colour'"):
        table_of("colour", "sine", seeds(s.AEVB, (1.0,)), "paper")


@pytest.mark.parametrize("shape", [(8, 1, 16), (8, 3, 4, 4)])
def test_arrays_of_figures_survive_the_file(shape, tmp_path):
    draws = np.random.default_rng(0)
    x, x_hat = (draws.uniform(0, 1, shape).astype(np.float32) for _ in range(2))
    mu = draws.normal(size=(5, 2)).astype(np.float32)
    kept = FigureArrays("key", 3, x, {"β-VAE": SystemArrays(x_hat, mu, None), "AEVB": SystemArrays(x_hat, mu, mu)})
    kept.save(tmp_path / "a.npz")
    found = FigureArrays.load(tmp_path / "a.npz")
    assert (found.condition, found.seed, list(found.systems)) == ("key", 3, ["β-VAE", "AEVB"])
    assert found.systems["β-VAE"].sigma is None
    np.testing.assert_allclose(found.x, x, atol=1 / 500)
    np.testing.assert_allclose(found.systems["AEVB"].sigma, mu, atol=2e-3)


def test_arrays_of_later_directories_join_those_of_the_same_seed(tmp_path, capsys):
    """Runs of one experiment made in several directories end up in one figure."""
    settings = ["--network", "mlp:hidden=4", "--max-epochs", "1", "--threads", "1"]
    results = {}
    for system, seed in ((s.AEVB, 1), (s.WISE_ALE, 1), (s.BETA_VAE, 0)):
        out = tmp_path / f"{system.folder}-{seed}"
        command = ["train", "sine:n=100,n_test=40", "--objective", system.objective, "--seed", str(seed)]
        assert run(capsys, *command, *settings, "--out", out)[0] == 0
        results[system.name] = Result(system, seed, out)
    first = collect_arrays([results[s.AEVB.name]], "key", reconstructions=True)
    joined = collect_arrays([results[s.WISE_ALE.name]], "key", reconstructions=True, before=first)
    assert (joined.seed, list(joined.systems)) == (1, [s.WISE_ALE.name, s.AEVB.name])
    np.testing.assert_array_equal(joined.x, first.x)
    np.testing.assert_array_equal(joined.systems[s.AEVB.name].x_hat, first.systems[s.AEVB.name].x_hat)
    of_another_seed = [results[s.BETA_VAE.name]]
    assert collect_arrays(of_another_seed, "key", reconstructions=True, before=joined) is joined
    other = collect_arrays(of_another_seed, "other", reconstructions=True, before=joined)
    assert (other.condition, other.seed, list(other.systems)) == ("other", 0, [s.BETA_VAE.name])
    without = collect_arrays([results[s.AEVB.name]], "key", reconstructions=True, inputs=False)
    assert len(without.x) == 0
    np.testing.assert_array_equal(without.systems[s.AEVB.name].x_hat, first.systems[s.AEVB.name].x_hat)

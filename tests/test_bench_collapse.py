"""The collapse benchmark: what it counts, and reruns that train nothing twice."""

from pathlib import Path

import pytest
from bench import collapse
from bench.collapse import SYSTEMS, Key, Row, main, read, table
from bench.kept_rows import append_row

from wiseale.objectives import make_objective, objective_names


def row(seed: int, units: int | None, information: float | None) -> Row:
    return Row("digits", "defaults", "aevb", seed, units, information, None if units is None else 0.5, 1.0, "abc")


def test_runs_without_active_units_or_with_little_information_are_counted() -> None:
    rows = [row(0, 0, 3.0), row(1, 2, 0.05), row(2, 2, 0.5), row(3, None, None)]
    (line,) = table(rows).rows
    assert line[3:7] == ("2 / 4", 1, "2", "0.5")  # collapsed, diverged, and the medians of the other three


def test_every_registered_stochastic_system_is_compared() -> None:
    missing = {name for name in objective_names() if make_objective(name).stochastic} - set(SYSTEMS)
    assert missing == set()


def test_a_rerun_trains_only_what_the_file_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, trained = tmp_path / "runs.csv", list[Key]()

    def measure(key: Key, at: str) -> Row:
        trained.append(key)
        return Row(*key, 1, 0.25, 0.5, 1.0, at)

    monkeypatch.setattr(collapse, "measure", measure)
    append_row(path, row(0, 2, 1.5))
    words = ["--sets", "digits", "--systems", "aevb", "--configurations", "defaults", "--csv", str(path)]
    main([*words, "--seeds", "3"])
    assert [key.seed for key in trained] == [1, 2]
    main([*words, "--seeds", "3"])
    assert len(trained) == 2
    assert read(path)[row(0, 2, 1.5).key] == row(0, 2, 1.5)

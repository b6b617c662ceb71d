"""Every mutation of ``torture.mutations`` names one piece of source, and tests that exist."""

from pathlib import Path

import pytest
from torture.mutations import MUTATIONS, file_of

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what)
def test_a_mutation_changes_one_place_and_names_its_tests(mutation):
    assert mutation.new != mutation.old
    assert (ROOT / "src" / "wiseale" / file_of(mutation)).is_file()
    files = [word for word in mutation.tests.split() if word.startswith("tests")]
    assert files
    assert all((ROOT / file).exists() for file in files)


def test_no_two_mutations_have_one_name():
    assert len({mutation.what for mutation in MUTATIONS}) == len(MUTATIONS)

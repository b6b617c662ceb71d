"""What the README and the pages tell people to type works: Python runs, commands and their options exist."""

import re
import shlex
from pathlib import Path

import click
import matplotlib.pyplot as plt
import pytest
from sklearn.datasets import load_iris

from wiseale.cli import group

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(r"^ *(?:\$ )?wiseale ([a-z].*)$", re.M)


@pytest.fixture
def measurements(tmp_path, monkeypatch):
    """The CSV of the examples: numbers, words and empty cells."""
    monkeypatch.chdir(tmp_path)
    irises = load_iris(as_frame=True)
    table = irises.data.assign(species=irises.target_names[irises.target])
    table.iloc[::7, 1] = None
    table.to_csv("measurements.csv", index=False)
    yield tmp_path
    plt.close("all")


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_python_of_a_page_runs(page, measurements):
    """With one epoch of training instead of hundreds."""
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.S | re.M)
    source = "\n".join(blocks)
    assert "random_state=0)" in source
    names = {}
    exec(source.replace("random_state=0)", "random_state=0, max_epochs=1)"), names)
    assert names["est"].transform(names["X"]).shape == (150, 2)
    if page == "README.md":
        assert (measurements / "map.png").stat().st_size > 10_000
        assert (measurements / "model" / "model.safetensors").exists()
        bound, kl = (re.search(rf"^{call}.*?([\d.]+) nats", source, re.M)[1] for call in ("kl_agg", "kl_post"))
        assert float(bound) == pytest.approx(float(names["kl_aggregate_upper_bound"](names["q"])), abs=5e-5)
        assert float(kl) == float(names["kl_posterior_prior"](names["q"]).mean())


def commands_on(page):
    """The calls of wiseale in a page's code blocks, continued lines joined."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```(?:sh|text)\n(.*?)^```", text, re.S | re.M) + re.findall(r"(?:^    .*\n)+", text, re.M)
    return [found for block in blocks for found in COMMAND.findall(block)]


@pytest.mark.parametrize("page", [page for page in PAGES if commands_on(page)], ids=lambda page: page.name)
def test_commands_on_a_page_exist_with_their_options(page):
    for line in commands_on(page):
        words = shlex.split(line, comments=True)
        context, command = click.Context(group), group
        while isinstance(command, click.Group) and words:
            command = command.get_command(context, words[0].split("|")[0])
            assert command is not None, f"there is no command in: wiseale {line}"
            words = words[1:]
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known, f"unknown options {given - known} in: wiseale {line}"


def test_no_page_has_the_name_of_one_that_sphinx_writes():
    """Sphinx's own search.html and genindex.html would replace it without a warning."""
    assert {page.stem for page in PAGES} & {"search", "genindex", "py-modindex"} == set()

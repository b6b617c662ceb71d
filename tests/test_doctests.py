"""The examples in docstrings and in pages of the documentation give the results that are written there."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import wiseale

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SOURCE = Path(wiseale.__file__).parent
DOCS = Path(__file__).parents[1] / "docs"
API_PAGE = DOCS / "api.md"
PAGES = [page for page in sorted(DOCS.glob("*.md")) if ">>> " in page.read_text(encoding="utf-8")]


def modules_with_examples():
    found = []
    for module in pkgutil.walk_packages(wiseale.__path__, "wiseale."):
        path = SOURCE.joinpath(*module.name.split(".")[1:])
        file = path / "__init__.py" if module.ispkg else path.with_suffix(".py")
        if ">>> " in file.read_text(encoding="utf-8"):
            found.append(module.name)
    return found


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_a_module(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("package", ["wiseale", "wiseale.objectives", "wiseale.estimator"])
def test_every_public_name_is_on_the_api_page(package):
    page = API_PAGE.read_text(encoding="utf-8")
    missing = [name for name in importlib.import_module(package).__all__ if name not in page]
    assert missing == []

"""Modules import only from earlier rooms, in the order that docs/architecture.md gives."""

import ast
import re
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "wiseale"

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
LAYERS = [
    line.split() for line in re.search(r"```text\nrooms\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1].splitlines()
]
LEVEL = {name: level for level, layer in enumerate(LAYERS) for name in layer}


def layer_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """First-level names under wiseale that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("wiseale.")}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "wiseale":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found


def test_imports_go_one_way():
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        here = layer_of(path)
        if here == "__init__":
            continue
        assert here in LEVEL, f"{path} belongs to no room: add it to the list in docs/architecture.md"
        later = {name for name in imported(path) if name != here and LEVEL.get(name, -1) >= LEVEL[here]}
        wrong += [f"{path.relative_to(SOURCE)} imports {name}" for name in sorted(later)]
    assert wrong == []


CONSUMERS = {"experiments", "report", "explorer", "paper"}


def test_the_library_imports_no_consumer():
    """But a command, and the explorer of an estimator, which load one when they are asked for."""
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        if layer_of(path) not in {*CONSUMERS, "cli", "__init__"} and path.name != "exploring.py":
            wrong += [f"{path.relative_to(SOURCE)} imports {name}" for name in sorted(imported(path) & CONSUMERS)]
    assert wrong == []


def test_the_list_of_rooms_is_that_of_the_package():
    rooms = {layer_of(path) for path in SOURCE.rglob("*.py")} - {"__init__"}
    assert sorted(LEVEL) == sorted(rooms)
    assert sum(map(len, LAYERS)) == len(LEVEL)


def test_every_file_named_on_the_page_exists():
    """Paths in code spans are those of the package, or of the repository where they begin with tests or docs."""
    spans = set(re.findall(r"`((?:[a-z]\w*/)+(?:\w+\.(?:py|md))?)`", PAGE.read_text("utf-8")))
    spans = {span for span in spans if "NAME" not in span}
    known = {span for span in spans if (PAGE.parents[1] / span).exists() or any(SOURCE.rglob(span))}
    assert len(spans) > 20
    assert spans - known == set()


def test_every_registered_name_resolves_to_settings():
    from wiseale import config, registry

    for kind in set(registry.REGISTRIES) - {"experiment"}:  # an experiment has no settings of its own
        for name in registry.names(kind):
            thing = config.build(kind, name)
            assert isinstance(thing, config.Settings)
            assert config.build(kind, config.spec_of(kind, thing)) == thing

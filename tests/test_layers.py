"""Modules import only from earlier layers."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "wiseale"

LAYERS = [
    {"errors"},
    {"registry", "platform", "randomness"},
    {"config"},
    {"posterior"},
    {"priors", "likelihoods"},
    {"kernels"},
    {"divergences"},
    {"processes"},
    {"data"},
    {"networks"},
    {"objectives"},
    {"models"},
    {"training"},
    {"runs"},
    {"estimator"},
    {"evaluation"},
    {"figures"},
    {"experiments"},
    {"report"},
    {"cli"},
    {"__main__"},
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
        assert here in LEVEL, f"{path} belongs to no layer: add it to LAYERS"
        later = {name for name in imported(path) if name != here and LEVEL.get(name, -1) >= LEVEL[here]}
        wrong += [f"{path.relative_to(SOURCE)} imports {name}" for name in sorted(later)]
    assert wrong == []


def test_every_registered_name_resolves_to_settings():
    from wiseale import config, registry

    for kind in set(registry.REGISTRIES) - {"experiment"}:  # an experiment has no settings of its own
        for name in registry.names(kind):
            thing = config.build(kind, name)
            assert isinstance(thing, config.Settings)
            assert config.build(kind, config.spec_of(kind, thing)) == thing

"""Imports point one way: lang → ir ← calculus ← planner ← engines ← database ← monitor, continual.

`LAYERS` is that sentence as a table: what each package under `harken` may import besides itself.
Every import statement counts, also one inside a function or under `if TYPE_CHECKING`.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

BELOW_PLANNER = {"errors", "limits", "ir", "calculus"}
BELOW_DATABASE = BELOW_PLANNER | {"lang", "planner", "engines", "settings", "stack"}
BELOW_MONITOR = BELOW_DATABASE | {"database"}
LAYERS = {
    "errors": set(),
    "settings": {"errors"},
    "limits": {"errors"},
    "stack": set(),
    "ir": {"errors", "limits"},
    "lang": {"errors", "ir", "settings", "stack"},
    "calculus": {"errors", "ir"},
    "planner": BELOW_PLANNER,
    "engines": BELOW_PLANNER | {"planner", "settings"},
    "database": BELOW_DATABASE,
    "sources": BELOW_MONITOR,
    "notify": BELOW_MONITOR,
    "monitor": BELOW_MONITOR | {"notify"},
    "continual": BELOW_MONITOR | {"notify", "sources"},
}
# The outermost ring, which may import anything; "harken" is the package's own __init__.py.
SURFACE = {"harken", "__main__", "bench", "cli", "demo", "doctor", "pipeline", "server", "shell"}

PYSPARK_ALLOWED = ("harken.engines.spark", "harken.pipeline", "harken.sources")
NAMES_THAT_SAY_NOTHING = {"helper", "helpers", "manager", "managers", "misc", "util", "utils"}


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> list[tuple[str, Path]]:
    return [(module_name(path), path) for path in sorted(SRC.glob("harken/**/*.py"))]


def layer(module: str) -> str:
    """`harken.ir.terms` is in `ir`; `harken` itself is in `harken`."""
    return module.split(".")[1] if "." in module else module


def is_inside(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def imports(source: str, module: str, *, is_package: bool = False) -> Iterator[tuple[int, str]]:
    """The line and the absolute name of each thing that the module imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = origin(node, module, is_package)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def origin(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """What stands between `from` and `import`, its leading dots resolved."""
    if node.level == 0:
        return node.module or ""
    package = module.split(".") if is_package else module.split(".")[:-1]
    base = package[: len(package) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def imported_layer(name: str) -> str:
    """`from harken import connect` imports the surface, `from harken import ir` the layer `ir`."""
    inner = layer(name)
    return inner if inner in LAYERS.keys() | SURFACE else "harken"


def wrong_imports(source: str, module: str, *, is_package: bool = False) -> list[str]:
    own = layer(module)
    allowed = LAYERS.get(own, LAYERS.keys() | SURFACE) | {own}
    return [
        f"{module}:{line} imports {name}"
        for line, name in imports(source, module, is_package=is_package)
        if (name.split(".")[0] == "harken" and imported_layer(name) not in allowed)
        or (name.split(".")[0] == "pyspark" and not is_inside(module, PYSPARK_ALLOWED))
    ]


def test_imports_point_one_way() -> None:
    wrong = [
        complaint
        for module, path in modules()
        for complaint in wrong_imports(
            path.read_text("utf-8"), module, is_package=path.name == "__init__.py"
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_every_module_has_a_layer() -> None:
    homeless = {layer(module) for module, _ in modules()} - LAYERS.keys() - SURFACE
    assert not homeless, f"give {sorted(homeless)} a place in LAYERS or SURFACE"


def test_module_names_say_what_is_inside() -> None:
    vague = [
        module
        for module, _ in modules()
        if NAMES_THAT_SAY_NOTHING & set(module.replace(".", "_").split("_"))
    ]
    assert not vague, f"name these after what they hold: {vague}"


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("harken.ir.terms", "import harken.lang.sql"),
        ("harken.ir.terms", "from harken import calculus"),
        ("harken.ir.terms", "from harken import connect"),
        ("harken.ir.terms", "import harken"),
        ("harken.ir.terms", "from ..lang import sql"),
        ("harken.ir.terms", "from .. import lang"),
        ("harken.planner.cost", "def f():\n    from harken.engines import base"),
        ("harken.lang.sql", "if TYPE_CHECKING:\n    import harken.database"),
        ("harken.monitor.feed", "from harken.continual import stops"),
        ("harken.database.catalog", "import pyspark.sql"),
        ("harken.cli", "from pyspark.sql import SparkSession"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert wrong_imports(source, module)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("harken.ir.terms", "from . import types\nfrom .types import Type\nimport math"),
        ("harken.ir.terms", "from ..errors import HarkenError"),
        ("harken.engines.spark.session", "from pyspark.sql import SparkSession"),
        ("harken.database.catalog", "from harken import engines, ir, lang"),
        ("harken.cli", "import harken.server"),
    ],
)
def test_a_right_import_is_let_through(module: str, source: str) -> None:
    assert wrong_imports(source, module) == []


def test_relative_imports_in_a_package_start_at_the_package() -> None:
    assert wrong_imports("from . import terms", "harken.ir", is_package=True) == []
    assert wrong_imports("from .. import lang", "harken.ir", is_package=True)


@pytest.mark.parametrize("program", ["import harken", "import harken; harken.connect()"])
def test_a_resident_run_does_not_load_spark(program: str) -> None:
    check = "import sys; sys.exit(bool({'pyspark', 'py4j'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", f"{program}; {check}"], check=True)

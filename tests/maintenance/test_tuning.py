"""Every number of the choice of a strategy stands in `maintenance/tuning.py`, with its unit."""

import ast
import itertools
import re
from pathlib import Path

from harken.maintenance import tuning

FOLDER = Path(tuning.__file__).parent
ADR = Path(__file__).parents[2] / "docs/adr/0021-one-chooser.md"
NEUTRAL = {-1, 0, 1}
"""Counting up or down, and the ends of a range."""
MILLISECONDS = 1e3


def numbers(node: ast.AST) -> set[float]:
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, int | float)
    }


def defaults(tree: ast.Module) -> set[float]:
    """The numbers assigned in a module or a class, and the defaults of arguments."""
    found: set[float] = set()
    for scope in ast.walk(tree):
        if isinstance(scope, ast.Module | ast.ClassDef):
            for each in scope.body:
                if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
                    found |= numbers(each.value)
        if isinstance(scope, ast.arguments):
            for default in (*scope.defaults, *filter(None, scope.kw_defaults)):
                found |= numbers(default)
    return found


def test_no_other_module_defines_a_number() -> None:
    for path in FOLDER.rglob("*.py"):
        if path.name not in ("tuning.py", "capacities.py"):
            tree = ast.parse(path.read_text())
            assert defaults(tree) <= NEUTRAL, path.name
            floats = {each for each in numbers(tree) if isinstance(each, float)}
            assert floats <= NEUTRAL | {MILLISECONDS}, path.name


def test_every_number_has_a_docstring_a_unit_and_evidence() -> None:
    body = ast.parse(Path(tuning.__file__).read_text()).body
    documented = []
    for each, after in itertools.pairwise(body):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
            assert isinstance(each.targets[0], ast.Name)
            assert isinstance(after, ast.Expr), f"{each.targets[0].id} has no docstring"
            documented.append(each.targets[0].id)
    assert [each.name for each in tuning.TUNING] == documented
    assert all(each.unit and each.evidence and each.value > 0 for each in tuning.TUNING)


def test_the_decision_record_lists_every_number() -> None:
    listed = re.findall(
        r"^\| `([A-Z_]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", ADR.read_text(), re.M
    )
    assert listed == [
        (each.name, f"{each.value:g}", each.unit, each.evidence) for each in tuning.TUNING
    ]

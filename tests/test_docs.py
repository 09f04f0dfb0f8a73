"""The documents are true: their examples run and print what they show, and they leave nothing out.

On each page the ```amosql, ```sql and ```datalog blocks run in order, in one session. A ```text
block directly after one is what it prints, in any order, or the report of its error; without one it
prints nothing. The ```python blocks run in order too, with `db` as that session until they make
their own, and with `spark` as a Spark session on pages that use one.
"""

from __future__ import annotations

import ast
import doctest
import os
import re
from pathlib import Path
from typing import Any

import pytest

import harken
import harken.errors
from harken.database.system import SYSTEM_RELATIONS, TYPES_OF
from harken.ir.operations import NAMED_AGGREGATES, OPERATIONS, PRIVATE_OPERATIONS
from harken.settings import SETTINGS
from tests.harness.syntax import nodes

ROOT = Path(__file__).parents[1]
LANGUAGE = (ROOT / "docs/amosql.md").read_text("utf-8")
EXAMPLE = re.compile(
    r"^```(amosql|sql|datalog|python)\n(.*?)^```$(?:\s*^```text\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
WITH_SPARK = re.compile(r"^```python\n(?:(?!^```$).*\n)*.*\bspark\.", re.MULTILINE)
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    if path.exists() and EXAMPLE.search(path.read_text("utf-8"))
]


def groups(page: Path) -> list[pytest.MarkDecorator]:
    """Which of what takes long to start the page needs (tests/harness/distribution.py)."""
    text = page.read_text("utf-8")
    needed = {"spark": WITH_SPARK.search(text), "servers": "postgresql_url" in text}
    return [pytest.mark.xdist_group(name) for name, is_needed in needed.items() if is_needed][:1]


def run_text(db: harken.Database, language: str, text: str) -> str:
    printed: list[str] = []
    try:
        db.run_program(language, text, lambda result: printed.extend(result.lines()))
    except harken.HarkenError as error:
        printed.append(error.report())
    return "\n".join(printed)


def comparable(output: str) -> list[str]:
    """Rows come in any order, and the numbers of objects are nobody's business."""
    return sorted(re.sub(r"#\[(\w+) \d+\]", r"#[\1]", line) for line in output.splitlines())


def run_python(text: str, names: dict[str, Any], where: str, line: int) -> None:
    if ">>>" not in text:
        exec(compile("\n" * line + text, where, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(text, names, where, where, line)
    test.globs = names
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append, clear_globs=False)
    assert not report, "".join(report)


@pytest.mark.timeout(600)  # some pages wait for Spark
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=groups(page)) for page in PAGES],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_examples(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))  # a page may change it
    text = page.read_text("utf-8")
    db = harken.connect()
    names: dict[str, Any] = {"__name__": "example", "db": db}
    if WITH_SPARK.search(text):
        names["spark"] = request.getfixturevalue("spark")
    if "postgresql_url" in text:
        names["postgresql_url"] = request.getfixturevalue("logical_database").url
    for example in EXAMPLE.finditer(text):
        language, program, output = example.groups()
        line = text.count("\n", 0, example.start()) + 1
        if language == "python":
            run_python(program, names, str(page), line)
        else:
            printed = run_text(db, language, program)
            assert comparable(printed) == comparable(output or ""), f"{page}:{line}"
    db.close()


# --- nothing is left out -------------------------------------------------------------------


def table(heading: str) -> set[str]:
    """What stands in backquotes in the first column of the tables under a heading."""
    section = LANGUAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*)\|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w-]+)", cell)}


def test_every_error_code_is_listed() -> None:
    assert raised_codes() - table("Errors") == set()


def test_every_setting_is_listed() -> None:
    text = (ROOT / "docs/settings.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert listed == [setting.name for setting in SETTINGS]
    assert listed == sorted(listed)


def test_every_range_of_a_setting_is_listed() -> None:
    text = (ROOT / "docs/settings.md").read_text("utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| `\w+` \|", line)]
    ranges = [cells[3] for cells in rows]
    kept = [each.range if ":" not in each.range else each.range.split(":")[0] for each in SETTINGS]
    assert ranges == kept


def test_every_built_in_function_is_listed() -> None:
    operations = {name for name in OPERATIONS if name not in PRIVATE_OPERATIONS}
    relations = {relation.name for relation in (*SYSTEM_RELATIONS, TYPES_OF)}
    aggregates = {name for name in NAMED_AGGREGATES if " " not in name}  # one is only for SQL
    known = operations | relations | aggregates | {"tclose"}
    assert known - table("Built-in functions") == set()


def raised_codes() -> set[str]:
    """The codes in the source: the argument `code`, or the default of an error made without it."""
    codes: set[str] = set()
    for path in (ROOT / "src/harken").rglob("*.py"):
        found = nodes(path.read_text("utf-8"))
        positions = {
            node.name: position
            for node in found
            if isinstance(node, ast.FunctionDef)
            for position, argument in enumerate(node.args.args)
            if argument.arg == "code"
        }
        for node in found:
            if isinstance(node, ast.Call):
                codes |= codes_of(node, positions)
    return codes


def codes_of(call: ast.Call, positions: dict[str, int]) -> set[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    if name in positions:
        given += call.args[positions[name] : positions[name] + 1]
    if given:
        constants = (node for node in ast.walk(given[0]) if isinstance(node, ast.Constant))
        return {node.value for node in constants if isinstance(node.value, str)}
    kind = getattr(harken.errors, name, None)
    is_error = isinstance(kind, type) and issubclass(kind, harken.HarkenError)
    return {kind.default_code} if is_error else set()


def test_the_glossary_has_each_term_once_and_in_order() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    terms = re.findall(r"^\*\*(.+?)\*\*", glossary, re.MULTILINE)
    assert terms
    assert terms == sorted(set(terms), key=str.casefold)


PATH = re.compile(r"`([\w.-]+(?:/[\w.-]*)+|[\w-]+\.(?:py|md|lark|json|toml))`")
PLAN_OF_THE_HOUSE = (ROOT / "docs/architecture.md").read_text("utf-8")


def missing_paths(text: str) -> list[str]:
    """The paths in a text that do not exist; NAME stands for any language.

    >>> missing_paths("`api/step.py`, `tests/cases/`, `lang/NAME` and `api/no_such_file.py`")
    ['api/no_such_file.py']
    """
    roots = (ROOT / "src/harken", ROOT, ROOT / "tests", ROOT / "docs")
    return [
        path
        for path in PATH.findall(text)
        if not any((root / path.replace("NAME", "sql")).exists() for root in roots)
    ]


def test_every_path_of_the_floor_plan_exists() -> None:
    assert not missing_paths(PLAN_OF_THE_HOUSE)


def test_the_floor_plan_says_where_strategies_are_registered() -> None:
    (row,) = (line for line in PLAN_OF_THE_HOUSE.splitlines() if line.startswith("| a strategy |"))
    assert "`maintenance/strategies/registry.py`" in row
    assert not missing_paths(row)


@pytest.mark.parametrize("text", ["`api/no_such_file.py`", "`no_such_folder/`", "`nothing.py`"])
def test_a_path_that_does_not_exist_is_found(text: str) -> None:
    assert missing_paths(text)

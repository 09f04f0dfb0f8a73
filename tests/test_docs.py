"""The documents are true: their examples run and print what they show, and they leave nothing out.

On each page the ```amosql blocks run in order, in one session. A ```text block directly after one is
what it prints, in any order, or the report of its error; without one it prints nothing. The ```python
blocks run in order too, with `db` as that session until they make their own.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import harken
import harken.errors
from harken.database.catalog import SYSTEM_RELATIONS, TYPES_OF
from harken.ir.operations import AGGREGATES, OPERATIONS, PRIVATE_OPERATIONS

ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if path.exists())
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LANGUAGE = (ROOT / "docs/amosql.md").read_text("utf-8")


@dataclass(frozen=True)
class Example:
    language: str
    text: str
    line: int
    output: str


def examples(page: str) -> Iterator[Example]:
    blocks = list(BLOCK.finditer(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        shown = following is not None and following[1] == "text"
        if shown and page[block.end() : following.start()].strip() == "":
            output = following[2]
        else:
            output = ""
        yield Example(block[1], block[2], page.count("\n", 0, block.start()) + 1, output)


def run_amosql(db: harken.Database, text: str) -> str:
    printed: list[str] = []
    try:
        db.run(text, lambda result: printed.extend(result.lines()))
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


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    db = harken.connect()
    names: dict[str, Any] = {"__name__": "example", "db": db}
    for example in examples(page.read_text("utf-8")):
        if example.language == "amosql":
            printed = run_amosql(db, example.text)
            assert comparable(printed) == comparable(example.output), f"{page}:{example.line}"
        elif example.language == "python":
            run_python(example.text, names, str(page), example.line)
    db.close()


# --- nothing is left out -------------------------------------------------------------------


def table(heading: str) -> set[str]:
    """What stands in backquotes in the first column of the tables under a heading."""
    section = LANGUAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*)\|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([\w-]+)", cell)}


def test_every_error_code_is_listed() -> None:
    assert raised_codes() == table("Errors")


def test_every_built_in_function_is_listed() -> None:
    operations = {name for name in OPERATIONS if name not in PRIVATE_OPERATIONS}
    relations = {relation.name for relation in (*SYSTEM_RELATIONS, TYPES_OF)}
    assert operations | relations | AGGREGATES.keys() | {"tclose"} == table("Built-in functions")


def raised_codes() -> set[str]:
    """The codes in the source: `code="..."`, or the default of an error that is made without."""
    codes: set[str] = set()
    for path in (ROOT / "src/harken").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                codes |= codes_of(node)
    return codes


def codes_of(call: ast.Call) -> set[str]:
    for keyword in call.keywords:
        if keyword.arg == "code":
            constants = (n.value for n in ast.walk(keyword.value) if isinstance(n, ast.Constant))
            return {value for value in constants if isinstance(value, str)}
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    kind = getattr(harken.errors, name, None)
    if isinstance(kind, type) and issubclass(kind, harken.HarkenError):
        return {kind.default_code}
    return set()


def test_the_glossary_has_each_term_once_and_in_order() -> None:
    glossary = (ROOT / "docs/glossary.md").read_text("utf-8")
    terms = re.findall(r"^\*\*(.+?)\*\*", glossary, re.MULTILINE)
    assert terms
    assert terms == sorted(set(terms), key=lambda term: (term.lower().lstrip("δ¬ "), term))

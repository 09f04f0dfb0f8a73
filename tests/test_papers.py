"""`docs/papers.md` leaves no section of the five papers out, and what it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/papers.md").read_text("utf-8")

SECTIONS = {
    "AMOS": "1.1 1.2 1.3 2.1 2.2 2.3 2.4 2.5 2.6 3.1 3.2 3.3 4.1 4.2 4.3 4.4 4.5 4.6 4.7 5.1 5.2 "
    "5.3 5.3.1 5.3.2 5.3.3 5.4 5.5 6.1 6.2 6.3 6.4 7.1 7.2 7.3 7.4 7.5 7.6 8.1 8.2 8.3 8.4 "
    "8.5 8.6 9.1 9.1.1 9.1.2 9.1.3 9.1.4 9.1.5 9.1.6 9.1.7 9.2 10",
    "The chapter": "1.1 1.2 1.3 1.4 1.4.1 1.4.2 1.5 1.5.1 1.5.2 1.5.3 1.6",
    "RoD": "1 2.1 2.2 3.1 3.2 4.1 4.1.1 4.1.2 4.1.3 4.1.4 4.2 4.3 5 6",
    "COSMA": "1 2.1 2.2 2.3 2.4 3.1 3.2 3.3 4.1 4.2 4.3 5.1 5.2 5.3 5.4 6 7",
    "CQ": "1.1 1.2 1.3 1.4 1.5 2.1 2.2 2.3 2.4.1 2.4.2 3.1 3.2 3.3 3.4 4.1 4.2 4.2.1 4.2.2 4.2.3 "
    "4.2.4 4.2.5 4.3 5.1 5.2 5.2.1 5.2.2 5.3 5.3.1 5.3.2 5.3.3 5.4 5.5.1 5.5.2 5.5.3 5.5.4 5.6 "
    "6.1 6.2.1 6.2.2 6.2.3 6.2.4 6.2.5 6.3 6.4.1 6.4.2 6.4.3 6.5 7.1 7.2 7.3 8.1 8.2 A",
}


def rows(paper: str) -> list[list[str]]:
    (text,) = re.findall(rf"^## {paper}: .*?\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and not line.startswith(("| section", "| ---"))
    ]


def expanded(named: str) -> list[str]:
    """`4.1.1 to 4.1.4` and `5.2.1, 5.2.2` name several sections."""
    if " to " not in named:
        return named.split(", ")
    first, last = named.split(" to ")
    front, _, number = first.rpartition(".")
    return [f"{front}.{each}" for each in range(int(number), int(last.rpartition(".")[2]) + 1)]


@pytest.mark.parametrize("paper", SECTIONS)
def test_no_section_is_left_out(paper: str) -> None:
    listed = [section for row in rows(paper) for section in expanded(row[0])]
    assert listed == SECTIONS[paper].split()


@pytest.mark.parametrize("paper", SECTIONS)
def test_a_section_is_somewhere_or_is_background(paper: str) -> None:
    for section, where, differs, runs in rows(paper):
        assert where or differs == "background", f"{paper} {section} is nowhere"
        assert runs or "](" in where or differs.startswith("background"), (
            f"{paper} {section} has no example"
        )


def test_what_the_page_names_is_there() -> None:
    for named in sorted(set(re.findall(r"`((?:src|tests)/[^`]+)`", PAGE))):
        path, _, function = named.partition("::")
        assert (ROOT / path).exists(), f"{path} is not there"
        if function:
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            names = {each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)}
            assert function in names, f"{path} has no {function}"

"""Bibliographies: one row for each entry; broken ones are set aside and named."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

from harken.sources.kinds import bibtex
from tests.harness.outside import opened, refused, table_of
from tests.harness.web_site import Answer, Site

BOOKS = r"""% our library
@string{js = "Journal of " # "Streams"}
@article{smith99, author = "J{\"o}rg M{\"u}ller and {Foo Inc.} and Ann van Dyke",
  title = {The {UNIX} way to caf\'e \& bar}, journal = js, year = 1999, month = jan,
  keywords = {Java, databases}, doi = {10.1000/a_b}}
@book{broken, title = {No end
@misc{other, title = "Plain", year = "in press", year2 = 3,}
@book{undefined, publisher = nowhere}
@comment{ignored}
@misc{other, title = "Again"}
"""


def test_the_examples_are_true() -> None:
    assert doctest.testmod(bibtex).failed == 0


def test_entries_are_rows_and_broken_ones_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.bib").write_text(BOOKS)
    source = opened("bibtex", path=f"{tmp_path}/a.bib")
    found = source.snapshot()
    assert found is not None
    assert found.schema.key == ("citekey",)
    assert found.part_column == "citekey"
    assert found.set_aside.keys() == {"broken", "undefined", "other (line 10)"}
    assert found.set_aside["undefined"] == "line 8: undefined string: nowhere"
    first, second = table_of(found).to_pylist()
    assert {name: value for name, value in first.items() if value is not None} == {
        "citekey": "smith99",
        "kind": "article",
        "author": "Müller, Jörg; Foo Inc.; van Dyke, Ann",
        "title": "The UNIX way to café & bar",
        "journal": "Journal of Streams",
        "year": 1999,
        "keywords": "Java, databases",
        "doi": "10.1000/a_b",
        "other": '{"month": "January"}',
    }
    assert (second["citekey"], second["title"], second["year"]) == ("other", "Plain", None)
    assert json.loads(second["other"]) == {"year": "in press", "year2": "3"}
    again = opened("bibtex", path=f"{tmp_path}/a.bib", keep_latex=True).snapshot()
    assert table_of(again).column("title").to_pylist()[0] == r"The {UNIX} way to caf\'e \& bar"


def test_a_bibliography_of_the_web(site: Site) -> None:
    site.pages["/b"] = Answer(b"@book{a, title={A}}", type="text/plain")
    source = opened("bibtex", url=site.url("/b"))
    first = source.snapshot()
    assert first is not None
    assert source.snapshot(first.position) is None


@pytest.mark.parametrize("text", ["", "<html>Log in</html>", "@book{a, title={x"], ids=str)
def test_what_has_no_entry_is_a_fault(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.bib").write_text(text)
    with refused("source-suspect"):
        opened("bibtex", path=f"{tmp_path}/a.bib").snapshot()

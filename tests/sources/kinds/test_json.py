"""JSON becomes rows: all pages of it, exact numbers, and nothing that is not there."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.outside import opened, refused, rows_of, table_of, types_of
from tests.harness.web_site import Answer, Site


def answer(value: Any, **headers: str) -> Answer:
    text = value if isinstance(value, str) else json.dumps(value)
    return Answer(text.encode(), type="application/json", headers=headers)


def read(site: Site, value: Any, **options: Any) -> pa.Table:
    site.pages["/j"] = answer(value)
    return table_of(opened("json", url=site.url("/j"), **options).snapshot())


def test_a_list_of_objects_is_a_table(site: Site) -> None:
    value = [{"id": 1, "name": "Pen"}, {"id": 2, "price": 1.5, "name": None}]
    found = read(site, value)
    assert found.to_pylist() == [
        {"id": 1, "name": "Pen", "price": None},
        {"id": 2, "name": None, "price": 1.5},
    ]


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        ({"data": {"items": [{"a": 1}]}}, {"rows": "data.items"}, [{"a": 1}]),
        ({"data": {"a": 1}}, {"rows": "$.data"}, [{"a": 1}]),
        ([1, 2], {}, [{"value": 1}, {"value": 2}]),
        (
            {"rates": {"USD": 1.5, "NOK": 11}},
            {"rows": "rates.*"},
            [{"key": "USD", "value": 1.5}, {"key": "NOK", "value": 11.0}],
        ),
        (
            {"by": {"a": {"n": 1}, "b": {"n": 2}}},
            {"rows": "by.*", "columns": ("@key", "n")},
            [{"key": "a", "n": 1}, {"key": "b", "n": 2}],
        ),
        (
            [{"id": 7, "lines": [{"n": 1}, {"n": 2}]}, {"id": 8, "lines": []}],
            {"rows": "[*].lines", "columns": ("^.id", "n")},
            [{"id": 7, "n": 1}, {"id": 7, "n": 2}],
        ),
        (
            [{"at": {"x.y": [5, 6]}}],
            {"columns": ('at."x.y"[0]', 'at["x.y"][-1]'), "names": ("first", "last")},
            [{"first": 5, "last": 6}],
        ),
        ([{"a": 1}], {"columns": ("a", "b?")}, [{"a": 1, "b": None}]),
        ([{"a": 1, "A": 2}], {}, [{"a": 1, "A_2": 2}]),
        ([{"a": {"z": 1, "b": [1.50, None]}}], {}, [{"a": '{"b": [1.5, null], "z": 1}'}]),
    ],
    ids=str,
)
def test_paths(site: Site, value: Any, options: dict[str, Any], expected: list[Any]) -> None:
    assert read(site, value, **options).to_pylist() == expected


def test_numbers_are_exact(site: Site) -> None:
    text = """[
        {"big": 123456789012345678901234567890, "money": 12345678901234.2575, "half": 0.10,
         "id": 9007199254740993, "text": "007", "day": "2026-05-01",
         "at": "2026-05-01T10:00:00+02:00"},
        {"big": 1, "money": 0.5, "half": 1, "id": 1, "text": "8", "day": null, "at": null}]"""
    found = read(site, text)
    types = {each.name: str(each.type) for each in found.schema}
    assert types == {
        "big": "string",
        "money": "decimal128(18, 4)",
        "id": "int64",
        "half": "double",
        "text": "string",
        "day": "date32[day]",
        "at": "timestamp[us]",
    }
    assert found.to_pylist()[0] == {
        "big": "123456789012345678901234567890",
        "money": Decimal("12345678901234.2575"),
        "id": 9007199254740993,
        "half": 0.1,
        "text": "007",
        "day": datetime.date(2026, 5, 1),
        "at": datetime.datetime(2026, 5, 1, 8),
    }
    declared = read(site, '[{"price": 1.10}]', types=("price decimal(6", "2)"))
    assert declared.to_pylist() == [{"price": Decimal("1.10")}]
    with refused("bad-option", "decimal(6, 2)", "1.105"):
        read(site, '[{"price": 1.105}]', types=("price decimal(6", "2)"))


def test_the_types_of_the_mirror_stay(site: Site) -> None:
    known = pa.schema([("n", pa.float64()), ("t", pa.string())])
    site.pages["/j"] = answer([{"n": 1, "t": 5}, {"n": 2, "t": {"a": True}}])
    found = opened("json", known, url=site.url("/j")).snapshot()
    assert rows_of(found) == [(1.0, "5"), (2.0, '{"a": true}')]
    site.pages["/j"] = answer([{"n": "much", "t": 5}])
    with refused("source-changed", "column n", "number", "'much'"):
        opened("json", known, url=site.url("/j")).snapshot()


# --- pages -----------------------------------------------------------------------------------


def test_pages_by_the_header_link(site: Site) -> None:
    site.pages["/j"] = answer([1], Link=f'<{site.url("/j2")}>; rel="next"')
    site.pages["/j2"] = answer([2], Link='</j>; rel="prev"')
    source = opened("json", url=site.url("/j"), next="link", token="t0ken")
    first = source.snapshot()
    assert rows_of(first) == [(1,), (2,)]
    assert {headers["authorization"] for _, headers in site.asked} == {"Bearer t0ken"}
    # A later page has changed, the first one has not.
    assert first is not None
    assert source.snapshot(first.position) is None
    site.pages["/j2"] = answer([3])
    assert rows_of(source.snapshot(first.position)) == [(1,), (3,)]
    later = opened("json", url=site.url("/j"), next="link", token="t0ken")
    second = later.snapshot(first.position)
    assert rows_of(second) == [(1,), (3,)]
    assert second is not None
    again = opened("json", url=site.url("/j"), next="link", token="t0ken")
    assert again.snapshot(second.position) is None


def test_pages_by_an_address_and_by_a_cursor(site: Site) -> None:
    site.pages["/j"] = answer({"rows": [1], "paging": {"next": "?page=2"}})
    site.pages["/j?page=2"] = answer({"rows": [2], "paging": {"next": None}})
    found = opened("json", url=site.url("/j"), rows="rows", next="paging.next").snapshot()
    assert rows_of(found) == [(1,), (2,)]
    site.pages["/c?n=2"] = answer({"rows": [1], "after": "a b"})
    site.pages["/c?n=2&after=a+b"] = site.pages["/c?n=2&after=a%20b"] = answer({"rows": [2]})
    found = opened(
        "json", url=site.url("/c?n=2"), rows="rows", next="after", cursor="after"
    ).snapshot()
    assert rows_of(found) == [(1,), (2,)]


def test_pages_end_or_are_a_fault(site: Site) -> None:
    site.pages["/j"] = answer({"rows": [1], "next": site.url("/j")})
    with refused("source-down", "read already"):
        opened("json", url=site.url("/j"), rows="rows", next="next").snapshot()
    site.pages["/j"] = answer({"rows": [1], "next": "http://elsewhere.example/"})
    with refused("not-allowed", "another host"):
        opened("json", url=site.url("/j"), rows="rows", next="next").snapshot()
    for number in range(5):
        site.pages[f"/{number}"] = answer({"rows": [1], "next": f"/{number + 1}"})
    with refused("source-down", "more than 3 pages", "max_pages"):
        opened("json", url=site.url("/0"), rows="rows", next="next", max_pages=3).snapshot()
    with refused("source-down", "404"):
        opened("json", url=site.url("/0"), rows="rows", next="next").snapshot()


# --- empty is not an error, an error is not empty --------------------------------------------

KNOWN = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ([], "$"),
        ({"items": []}, "items"),
        ({"items": None}, "items"),
        ({"data": None}, "data.items"),
        ({"orders": []}, "orders[*].lines"),
        ({"rates": {}}, "rates.*"),
    ],
    ids=str,
)
def test_nothing_is_empty(site: Site, value: Any, rows: str) -> None:
    site.pages["/j"] = answer(value)
    found = opened("json", KNOWN, url=site.url("/j"), rows=rows).snapshot()
    assert table_of(found).schema == KNOWN
    found = opened("json", url=site.url("/j"), rows=rows, columns=("a",)).snapshot()
    assert types_of(found) == {"a": "string"}
    with refused("bad-option", "columns are not known"):
        opened("json", url=site.url("/j"), rows=rows).snapshot()


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ('{"error": "maintenance"}', {"rows": "items"}, ["'items'", "the members error"]),
        ('{"items": [{"b": 1}]}', {"rows": "items", "columns": ("a",)}, ["'a'", "members b"]),
        ("[1, 2]", {"rows": "items"}, ["a list of 2"]),
        ('{"items": [{"a": 1}', {"rows": "items"}, ["not JSON", "line 1", "application/json"]),
        ('[{"a": 1}] x', {}, ["not JSON"]),
        ("", {}, ["not JSON"]),
        ('[{"a": NaN}]', {}, ["not JSON"]),
        ("[" * 200_000, {}, ["deeply"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_not_there_is_a_fault(
    site: Site, text: str, options: dict[str, Any], words: list[str]
) -> None:
    site.pages["/j"] = answer(text)
    with refused("source-suspect", *words):
        opened("json", KNOWN, url=site.url("/j"), **options).snapshot()


def test_a_page_of_html_is_no_json(site: Site) -> None:
    site.pages["/j"] = Answer(b"<p>Log in")
    with refused("source-suspect", "text/html"):
        opened("json", KNOWN, url=site.url("/j")).snapshot()


@pytest.mark.parametrize(
    "options",
    [
        {"rows": "a..b"},
        {"rows": "a["},
        {"columns": ("a", "b"), "names": ("c",)},
        {"cursor": "after"},
        {"next": "link", "cursor": "x"},
        {"headers": "nothing"},
        {"headers": "Host: other.example"},
    ],
    ids=str,
)
def test_wrong_options_are_refused(site: Site, options: dict[str, Any]) -> None:
    site.pages["/j"] = answer([1])
    with refused("bad-option"):
        opened("json", url=site.url("/j"), **options).snapshot()


# --- files -----------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"n": 1}]')
    (tmp_path / "b.json").write_text('[{"n": 2}]')
    (tmp_path / "_part.json").write_text("[")
    pattern = f"{tmp_path}/*.json"
    found = opened("json", path=pattern, page_column="file").snapshot()
    assert rows_of(found) == [(1, f"{tmp_path}/a.json"), (2, f"{tmp_path}/b.json")]
    assert found is not None
    assert found.at is not None
    (tmp_path / "b.json").write_text('[{"n": 2}')
    source = opened("json", path=pattern, page_column="file")
    second = source.snapshot(found.position)
    assert second is not None
    assert list(second.set_aside) == [f"{tmp_path}/b.json"]
    assert rows_of(second) == [(1, f"{tmp_path}/a.json")]
    (tmp_path / "b.json").unlink()
    (tmp_path / "a.json").unlink()
    assert rows_of(opened("json", KNOWN, path=pattern).snapshot()) == []
    with refused("source-down", "no file"):
        opened("json", path=f"{tmp_path}/a.json").snapshot()
    with refused("source-down", "no file or directory", "nowhere"):
        opened("json", path=f"{tmp_path}/nowhere/*.json").snapshot()


def test_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n\n{"n": 2}\n')
    assert rows_of(opened("json", path=f"{tmp_path}/a.jsonl").snapshot()) == [(1,), (2,)]
    assert rows_of(opened("json", path=f"{tmp_path}/a.jsonl", lines=True).snapshot()) == [
        (1,),
        (2,),
    ]
    with refused("source-suspect", "option lines"):
        opened("json", path=f"{tmp_path}/a.jsonl", lines=False).snapshot()
    with refused("bad-option", "each line", "rows 'n'", "option columns"):
        opened("json", path=f"{tmp_path}/a.jsonl", rows="n").snapshot()
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"n"')
    with refused("source-suspect", "line 2"):
        opened("json", path=f"{tmp_path}/a.jsonl").snapshot()


def test_files_lie_under_the_allowed_roots(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for each in (inside, outside):
        each.mkdir()
        (each / "a.json").write_text("[1]")
    (inside / "link.json").symlink_to(outside / "a.json")
    (inside / "own.json").symlink_to(inside / "a.json")
    roots = {"allowed_roots": (str(inside),)}
    assert rows_of(opened("json", given=roots, path=f"{inside}/own.json").snapshot()) == [(1,)]
    for path in ("out/a.json", "in/link.json", "in/../out/a.json", "in/*.json", "out/*.json"):
        with refused("not-allowed", "source_roots"):
            opened("json", given=roots, path=f"{tmp_path}/{path}").snapshot()
    with refused("source-down"):
        opened("json", path=str(inside)).snapshot()
    with refused("source-suspect", "3 bytes", "max_bytes"):
        (inside / "a.json").write_text("[1, 2]")
        opened("json", path=f"{inside}/a.json", max_bytes=3).snapshot()

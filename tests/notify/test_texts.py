"""The words of messages without a template."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harken.notify.texts import MOST_ROWS, built_in
from tests.notify.channels.sample_messages import message

ABOUT = message("email", "ann@example.org").message


@pytest.mark.parametrize(
    ("kind", "payload", "subject"),
    [
        ("results", {"inserted": [{"a": 1}], "deleted": [{"a": 2}]}, "low: 1 new, 1 gone"),
        ("results", {"count": 1234}, "low: 1,234 rows"),
        ("results", {}, "low: no change"),
        ("stopped", {}, "low has stopped"),
        ("error", {"text": "no such table"}, "low fails"),
        ("operator_error", {}, "Harken: low fails and needs its operator"),
        ("recovered", {}, "low works again"),
        ("announcement", {"text": "we move\ntomorrow"}, "we move"),
        ("announcement", {}, "An announcement"),
        ("sample", {}, "low: a sample message"),
    ],
)
def test_each_kind_has_a_subject(kind: str, payload: dict[str, Any], subject: str) -> None:
    assert built_in(replace(ABOUT, kind=kind, payload=payload)).subject == subject


def test_a_changed_row_shows_what_it_was() -> None:
    row = {"old": {"item": "pen", "left": 9}, "new": {"item": "pen", "left": 2}}
    found = built_in(replace(ABOUT, payload={"changed": [row]}))
    assert "item: pen, left: 9 -> 2" in found.text
    assert "<td>9 -&gt; 2</td>" in found.html


def test_many_rows_are_counted() -> None:
    rows = [{"n": n} for n in range(MOST_ROWS + 12)]
    found = built_in(
        replace(ABOUT, payload={"inserted": rows, "left_out": {"inserted": 400}}),
        link="https://harken.example.org/x",
    )
    assert found.subject == "low: 512 new"
    assert "and 412 more" in found.text
    assert '<a href="https://harken.example.org/x">' in found.html


def test_values_cannot_become_markup_or_lines() -> None:
    row = {"<b>": "<i>x\r\ny", "nothing": None, "yes": True}
    found = built_in(replace(ABOUT, payload={"inserted": [row, "odd"]}))
    assert "<i>" not in found.html
    assert "<b>: <i>x y, nothing: null, yes: true" in found.text

"""Lines of text by a pattern, in linear time."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.harness.outside import opened, refused, rows_of, types_of
from tests.harness.web_site import Answer, Site

PATTERN = r"^(?P<at>\S+) (?P<level>[A-Z]+)(?: (?P<code>\d+))? (?P<message>.*)$"
LOG = "2026-05-01T10:00:00Z WARN 12 disk full\r\n\n2026-05-01T11:00:00Z INFO Åse came\n"


def test_named_groups_are_columns(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG, newline="")
    source = opened("text", path=f"{tmp_path}/*.log", pattern=PATTERN)
    found = source.snapshot()
    assert types_of(found) == {
        "at": "timestamp[us]",
        "level": "string",
        "code": "int64",
        "message": "string",
    }
    assert rows_of(found) == [
        (datetime.datetime(2026, 5, 1, 10), "WARN", 12, "disk full"),
        (datetime.datetime(2026, 5, 1, 11), "INFO", None, "Åse came"),
    ]
    assert found is not None
    assert source.snapshot(found.position) is None
    with (tmp_path / "a.log").open("a") as file:
        file.write("-- restarted --\n2026-05-02T00:00:00Z INFO up\n")
    assert len(rows_of(source.snapshot(found.position))) == 3
    with refused("source-suspect", "line 4", "restarted"):
        opened("text", path=f"{tmp_path}/a.log", pattern=PATTERN, unmatched="refuse").snapshot()


def test_an_empty_file_is_empty_and_one_of_other_lines_is_a_fault(
    tmp_path: Path, site: Site
) -> None:
    (tmp_path / "a.log").write_text("\n")
    assert rows_of(opened("text", path=f"{tmp_path}/a.log", pattern=PATTERN).snapshot()) == []
    (tmp_path / "a.log").write_text("other\nlines\n")
    with refused("source-suspect", "any of 2 lines", "'other'"):
        opened("text", path=f"{tmp_path}/a.log", pattern=PATTERN).snapshot()
    site.pages["/t"] = Answer(b"", type="text/plain")
    with refused("source-suspect", "empty"):
        opened("text", url=site.url("/t"), pattern=PATTERN).snapshot()


@pytest.mark.parametrize("pattern", ["(", "no group", r"(?P<a>x)\1", "(?P<a>" + "x{1000}" * 1000])
def test_wrong_patterns_are_refused(tmp_path: Path, pattern: str) -> None:
    with refused("bad-option"):
        opened("text", path=f"{tmp_path}/a.log", pattern=pattern)


def test_a_pattern_takes_linear_time(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("a" * 100_000 + "!\nab\n")
    found: Any = opened("text", path=f"{tmp_path}/a.log", pattern="^(?P<a>(a+)+)b$").snapshot()
    assert rows_of(found) == [("a",)]

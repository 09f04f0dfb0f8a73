"""Measured figures in the documents say which commit they were measured on.

`harken bench --record docs/measured.json` keeps figures with their commit. A document that quotes
one names that commit; a figure that is older than the record names the commit that wrote it into
the document, with a `~` before it. `quotes` in the record says which words of which document are
which figure, so that neither can change without the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harken.bench import BENCHMARKS, PARTS, report
from harken.bench.figures import Figure
from harken.bench.record import PUBLISHED, Record, Run, read
from harken.cli import app
from harken.errors import HarkenError

pytestmark = pytest.mark.usefixtures("little_garbage")

ROOT = Path(__file__).parents[1]
RECORD = read(ROOT / "docs/measured.json")
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]

FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
FIGURE = re.compile(
    r"\b\d[\d,.]* ?(?:ms|µs)\b|\b\d[\d,.]* times (?:as|faster)|\btook \d|\btakes? \d[\d.]* to \d"
    r"|harken bench[^`]*`[^.]*\d times"
)
"""What a measured time, or a ratio of times, looks like in prose."""
COMMIT = re.compile(r"`(~?)([0-9a-f]{7})`")


def blocks(page: Path) -> Iterator[str]:
    """Paragraphs, list items and rows of tables."""
    text = FENCED.sub("", page.read_text("utf-8"))
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.lstrip().startswith("|"):
            continue
        yield from re.split(r"\n(?=- )", paragraph)


def measured_rows(page: Path) -> Iterator[str]:
    """The rows of tables that have a column `measured`."""
    is_measured = False
    for line in page.read_text("utf-8").splitlines():
        if not line.startswith("|"):
            is_measured = False
        elif "| measured |" in line:
            is_measured = True
        elif is_measured and not line.startswith("| ---"):
            yield line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_measured_figure_names_its_commit(page: Path) -> None:
    unnamed = [block for block in blocks(page) if FIGURE.search(block) and not COMMIT.search(block)]
    unnamed += [row for row in measured_rows(page) if not COMMIT.search(row.split("|")[-2])]
    assert unnamed == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_commit_without_a_mark_is_in_the_record(page: Path) -> None:
    known = {line["commit"].removesuffix("+") for line in RECORD["figures"]}
    text = FENCED.sub("", page.read_text("utf-8"))
    assert {commit for is_older, commit in COMMIT.findall(text) if not is_older} <= known


def find(quoted: dict[str, Any]) -> dict[str, Any]:
    (found,) = [
        line
        for line in RECORD["figures"]
        if all(line[key] == quoted[key] for key in ("name", "measure", "params"))
    ]
    return found


@pytest.mark.parametrize("quote", RECORD["quotes"], ids=lambda quote: quote["says"][:60])
def test_documents_quote_the_record(quote: dict[str, Any]) -> None:
    page = ROOT / quote["document"]
    (line,) = [each for each in page.read_text("utf-8").splitlines() if quote["says"] in each]
    figures = [find(each) for each in quote["figures"]]
    assert {commit for _, commit in COMMIT.findall(line)} == {
        figure["commit"].removesuffix("+") for figure in figures
    }
    shown = [each.replace(",", "") for each in re.findall(r"\d[\d,]*(?:\.\d+)?", quote["says"])]
    for figure in figures:
        value = f"{figure['value']:g}"
        assert value in shown, f"{figure['measure']} is {value}"


def test_every_recorded_target_holds_or_the_document_says_so() -> None:
    missed = [line for line in RECORD["figures"] if line.get("holds") is False]
    told = [json.dumps(line["note"]) for line in missed if "note" in line]
    assert len(told) == len(missed), missed


def test_all_that_is_quoted_is_published() -> None:
    names = {run.name for run in PUBLISHED}
    assert names <= {*BENCHMARKS, *PARTS}
    for page in PAGES:
        text = page.read_text("utf-8")
        quoted = set(re.findall(r"harken bench ([a-z][a-z-]*)", text)) & {*BENCHMARKS, *PARTS}
        covered = names | {"lake"}  # its parts are published one by one
        assert quoted <= covered, page.name


# --- the record ----------------------------------------------------------------------------


def test_a_figure_takes_the_place_of_the_older_one(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    Record(path, "busy").keep([Figure("point-write", "harken/apsw", 2.14159, {"items": 5})])
    again = Figure("point-write", "harken/apsw", 1.5, {"items": 5}, needs="<= 4")
    other = Figure("point-write", "harken/apsw", 1.7, {"items": 6})
    Record(path).keep([again, other])
    lines = read(path)["figures"]
    assert [(line["params"], line["value"]) for line in lines] == [
        ({"items": 5}, 1.5),
        ({"items": 6}, 1.7),
    ]
    assert lines[0]["holds"]
    assert all(line["commit"] and line["day"] and line["machine"] for line in lines)
    assert "note" not in lines[0]


def test_quotes_stay_when_figures_are_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text('{"figures": [], "quotes": [{"document": "README.md"}]}')
    Record(path).keep([Figure("point-write", "harken/apsw", 1.5)])
    assert read(path)["quotes"] == [{"document": "README.md"}]


def test_another_file_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    for text in ("[]", "{", '{"figures": 3, "quotes": []}'):
        path.write_text(text)
        with pytest.raises(HarkenError) as caught:
            Record(path)
        assert caught.value.code == "cannot-read"
        assert path.read_text() == text


# --- the command ---------------------------------------------------------------------------


def harken_bench(*arguments: str) -> str:
    outcome = CliRunner().invoke(app, ["bench", *arguments], catch_exceptions=False)
    assert outcome.exit_code == 0
    return outcome.stdout


def test_the_command_records_what_it_prints(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    options = ("--items", "20", "--rounds", "1", "--format", "json", "--note", "a test")
    printed = harken_bench("point", *options, "--record", str(path)).splitlines()
    recorded = read(path)["figures"]
    assert sorted((line["name"], line["value"]) for line in map(json.loads, printed)) == sorted(
        (line["name"], line["value"]) for line in recorded
    )
    assert {line["note"] for line in recorded} == {"a test"}


def test_all_goes_with_no_other_choice() -> None:
    with pytest.raises(HarkenError, match="--all runs each benchmark as the documents quote it"):
        harken_bench("point", "--all")


def test_all_runs_what_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PUBLISHED", (Run("point", items=(20,), rounds=1),))
    printed = harken_bench("--all", "--format", "json").splitlines()
    assert {"point-read", "point-write"} <= {json.loads(line)["name"] for line in printed}

"""The documentation site builds without a warning, shows every page, and is complete by itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from harken.bench.reference import command_line, known_names, sources

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NOT_IN_THE_MENU = {"adr"}
"""Folders whose pages others link to."""
LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?(?:https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    settings = directory / "zensical.toml"
    text = (ROOT / "zensical.toml").read_text("utf-8")
    settings.write_text(text.replace('"src"', f'"{ROOT / "src"}"'), "utf-8")
    shutil.copytree(DOCS, directory / "docs")
    zensical = Path(sys.executable).with_name("zensical")
    command = [zensical, "build", "--strict", "-f", settings]
    built = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return directory / "build" / "site"


def test_every_page_is_in_the_menu() -> None:
    text = (ROOT / "zensical.toml").read_text("utf-8")
    tomllib.loads(text)
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    shown = {page for page in pages if page.split("/")[0] not in NOT_IN_THE_MENU}
    assert set(re.findall(r'"([\w/-]+\.md)"', text)) == shown


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    assert [page for page in pages if LOADED.search(page.read_text("utf-8"))] == []


def test_the_python_reference_has_signatures(site: Path) -> None:
    text = (site / "reference/python/index.html").read_text("utf-8")
    assert "engine=" in re.sub(r"<[^>]*>", "", text)


def test_the_page_of_commands_is_that_of_the_code() -> None:
    page = (DOCS / "reference/command-line.md").read_text("utf-8")
    assert page == command_line(), "run script/reference command-line"


def test_the_page_of_kinds_of_sources_is_that_of_the_code() -> None:
    page = (DOCS / "reference/sources.md").read_text("utf-8")
    assert page == sources(), "run script/reference sources"


def test_the_page_of_functions_names_what_the_parser_knows() -> None:
    page = (DOCS / "reference/functions.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert listed
    assert set(listed) <= set(known_names())

"""Reads the files of a project: their declarations, and the seeds and tests of the .yml files.

Files are read in the order of their names; that order means nothing else, because declarations are
made in the order of dependency.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from harken.database.language_names import SQL
from harken.errors import HarkenError
from harken.project.continual_documents import ProjectQuery, read_query
from harken.project.environment import with_variables
from harken.project.expectations import Expectation, read_expectation
from harken.project.project_fault import ProjectFault
from harken.project.seeds import Seed, read_seed
from harken.statements.declaration import FACT, Declaration
from harken.statements.language_registry import language_of_suffix, languages

if TYPE_CHECKING:
    from harken.project.documents import Node

YAML = (".yml", ".yaml")
SECTIONS = ("name", "include", "sources", "domains", "seeds", "tests", "queries")


@dataclass(frozen=True, slots=True)
class Declared:
    """A declaration, and the file that contains it."""

    declaration: Declaration
    language: str
    source: str
    text: str

    @property
    def key(self) -> tuple[str, str]:
        return self.declaration.key

    @property
    def title(self) -> str:
        return f"{self.declaration.kind} {self.declaration.name}"

    @property
    def place(self) -> str:
        line, _ = self.declaration.span.position(self.text)
        return f"{self.source}:{line}"

    def wrong(self, message: str, code: str, hint: str | None = None) -> HarkenError:
        fault = ProjectFault(message, code=code, span=self.declaration.span, hint=hint)
        return fault.locate(self.text, self.source)


@dataclass(slots=True)
class Project:
    name: str
    declared: list[Declared] = field(default_factory=list)
    seeds: list[Seed] = field(default_factory=list)
    tests: list[Expectation] = field(default_factory=list)
    queries: list[ProjectQuery] = field(default_factory=list)
    """Its continual queries."""
    directories: list[str] = field(default_factory=list)
    """Where modules of foreign functions are searched."""
    files: list[Path] = field(default_factory=list)
    """The files that were read, including those of seeds."""


def read_project(directory: Path, environment: Mapping[str, str] | None = None) -> Project:
    """Read a directory; an error has the file, the line and the column."""
    if not directory.is_dir():
        is_file = directory.exists()
        raise ProjectFault(
            f"{directory} is {'a file' if is_file else 'not there'}, and a project is a directory",
            code="cannot-read",
            hint=f"harken run {directory}" if is_file else None,
        )
    reader = _Reader(os.environ if environment is None else environment)
    reader.take(directory)
    if not reader.project.files:
        raise ProjectFault(
            f"there are no files of a project in {directory}",
            code="cannot-read",
            hint=f"it may have files with the suffixes {', '.join([*suffixes(), *YAML])}",
        )
    project = reader.project
    project.name = project.name or directory.resolve().name
    return project


def suffixes() -> list[str]:
    return [suffix for each in languages() for suffix in each.suffixes]


class _Reader:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._seen: set[Path] = set()
        self.project = Project("")

    def take(self, path: Path) -> None:
        """A directory with everything below it, or a file; each once, whoever includes it."""
        for file in files_below(path):
            resolved = file.resolve()
            if resolved in self._seen:
                continue
            self._seen.add(resolved)
            self.project.files.append(file)
            parent = str(resolved.parent)
            if parent not in self.project.directories:
                self.project.directories.append(parent)
            text = with_variables(read_text(file), str(file), self._environment)
            if file.suffix in YAML:
                from harken.project.documents import read_documents  # it needs PyYAML

                for document in read_documents(text, str(file)):
                    self._document(document, file)
            else:
                self._program(text, file)

    def _program(self, text: str, file: Path) -> None:
        language = language_of_suffix(file.suffix)
        assert language is not None
        try:
            found = list(language.declarations(text))
        except HarkenError as error:
            raise error.locate(text, str(file)) from error.__cause__
        for each in found:
            self._declare(Declared(each, language.name, str(file), text))

    def _declare(self, new: Declared) -> None:
        known = next((each for each in self.project.declared if each.key == new.key), None)
        if known is None:
            self.project.declared.append(new)
        elif new.declaration.kind != FACT:  # stating a fact twice is stating it once
            raise new.wrong(f"there is already a {new.title}, at {known.place}", "exists")

    def _document(self, document: Node, file: Path) -> None:
        entries = document.known("a project", SECTIONS)
        if "name" in entries:
            self._name(entries["name"])
        for each in _listed(entries, "include"):
            included = file.parent / each.words("what is included")
            if not included.exists():
                each.wrong(f"there is no {included}")
            self.take(included)
        for section, declared in _declared_in(file.parent):
            if section in entries:
                for name, node in entries[section].entries(section).items():
                    self._declare(Declared(declared(name, node), SQL, str(file), node.text))
        if "seeds" in entries:
            for table, rows in entries["seeds"].entries("seeds").items():
                seed = read_seed(table, rows, file.parent, self.project.files)
                if any(known.table == seed.table for known in self.project.seeds):
                    rows.wrong(f"{table} has seeds already")
                self.project.seeds.append(seed)
        if "queries" in entries:
            for name, node in entries["queries"].entries("queries").items():
                if any(known.name.lower() == name.lower() for known in self.project.queries):
                    node.wrong(f"there is already a continual query {name}")
                self.project.queries.append(read_query(name, node))
        for each in _listed(entries, "tests"):
            self.project.tests.append(read_expectation(each))

    def _name(self, node: Node) -> None:
        name = node.words("the name of a project")
        if self.project.name not in ("", name):
            node.wrong(f"this project is called {self.project.name} already")
        self.project.name = name


def _declared_in(directory: Path) -> tuple[tuple[str, Callable[[str, Node], Declaration]], ...]:
    """The sections whose entries stand for statements."""
    from harken.project.source_documents import domain_declared, source_declared

    return (
        ("sources", partial(source_declared, directory=directory)),
        ("domains", domain_declared),
    )


def _listed(entries: dict[str, Node], name: str) -> list[Node]:
    return entries[name].items(f"`{name}`") if name in entries else []


def files_below(path: Path) -> Iterator[Path]:
    """The files of a project in a directory, except hidden ones; or the file itself."""
    if not path.is_dir():
        yield path
        return
    for each in sorted(path.iterdir()):
        if each.name.startswith((".", "__")):
            continue
        if each.is_dir():
            yield from files_below(each)
        elif each.suffix in (*suffixes(), *YAML):
            yield each


def read_text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ProjectFault(f"{file} cannot be read: {error.strerror}", code="cannot-read") from None
    except UnicodeDecodeError:
        raise ProjectFault(f"{file} is not UTF-8", code="not-utf-8") from None


def only(project: Project, kinds: Iterable[str]) -> Project:
    """The definitions of a project without seeds."""
    kept = [each for each in project.declared if each.declaration.kind not in kinds]
    return replace(project, declared=kept, seeds=[], tests=[], queries=[])

"""Lines of text files or pages by a pattern: its named groups are the columns.

    pattern '^(?P<at>\\S+) (?P<level>[A-Z]+) (?P<message>.*)$'

Patterns are those of RE2, whose time is linear in the text, so no line takes long.

Law: a text of which no line matches is a fault; one without lines is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import re2

from harken.errors import SourceFault, counted
from harken.limits import check
from harken.sources.number_texts import NUMBER_OPTIONS, numeral_reader
from harken.sources.outside import Context, Opened, Option
from harken.sources.polled_documents import Parsed, open_documents
from harken.sources.read_documents import DOCUMENT_OPTIONS, Document
from harken.sources.typed_rows import TypedRows
from harken.values.matching import compile_linear

MOST_ROWS = 5_000_000
LONGEST_LINE = 1_000_000
"""Characters."""
CHECKED_EVERY = 1_000
"""Lines."""
SHOWN = 60


@dataclass(frozen=True, slots=True)
class TextParser:
    pattern: Any
    names: tuple[str, ...]
    groups: tuple[int, ...]
    refuses: bool
    encoding: str | None

    def __call__(self, document: Document) -> Parsed:
        text = document.text(self.encoding, ("utf-8", "windows-1252"))
        rows: list[tuple[Any, ...]] = []
        lines = 0
        for number, whole in enumerate(text.split("\n"), 1):
            line = whole.removesuffix("\r")
            if not line.strip():
                continue
            lines += 1
            if lines % CHECKED_EVERY == 0:
                check()
            found = self.pattern.search(line) if len(line) <= LONGEST_LINE else None
            if found is not None:
                rows.append(tuple(found.group(group) or None for group in self.groups))
            elif self.refuses:
                raise self._unmatched(document.name, f"line {number}", line)
            if len(rows) > MOST_ROWS:
                raise SourceFault(
                    f"{document.name} has more than {MOST_ROWS:,} rows", code="source-suspect"
                )
        if lines and not rows:
            first = next(line for line in text.split("\n") if line.strip())
            raise self._unmatched(document.name, f"any of {counted(lines, 'line')}", first)
        if not lines and not document.address.startswith("/"):
            raise SourceFault(f"{document.name} is empty", code="source-suspect")
        return Parsed(self.names, list(rows))

    def _unmatched(self, name: str, where: str, line: str) -> SourceFault:
        shown = line if len(line) <= SHOWN else line[:SHOWN] + "…"
        return SourceFault(
            f"the pattern does not match {where} of {name}: {shown!r}",
            code="source-suspect",
            hint=f"check the pattern, which is {self.pattern.pattern[:SHOWN]}; with unmatched "
            "'skip' other lines are left out",
        )


def _compiled(text: str) -> Any:
    try:
        return compile_linear(text)
    except (re2.error, UnicodeError):
        raise SourceFault(
            f"{text[:80]!r} is no pattern",
            code="bad-option",
            hint="patterns are those of RE2, without backreferences and lookaround",
        ) from None


@dataclass(frozen=True, slots=True)
class TextKind:
    name = "text"
    title = "lines of text"
    captures = ("poll",)
    options: tuple[Option, ...] = (
        *DOCUMENT_OPTIONS,
        Option("pattern", "A pattern of RE2 with a named group for each column.", required=True),
        Option(
            "unmatched",
            "What happens to lines that do not match.",
            "choice",
            "skip",
            choices=("skip", "refuse"),
        ),
        *NUMBER_OPTIONS,
    )

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        pattern = _compiled(options["pattern"])
        groups = sorted((number, name) for name, number in pattern.groupindex.items())
        if not groups:
            raise SourceFault(
                "the pattern has no named group, so there are no columns",
                code="bad-option",
                hint="write (?P<name>...) around what is a column",
            )
        typed = TypedRows.of(
            context.known,
            options["types"],
            textual=True,
            nulls=options["nulls"],
            numeral=numeral_reader(options),
        )
        names = tuple(name for _, name in groups)
        parser = TextParser(
            pattern,
            names,
            tuple(number for number, _ in groups),
            options["unmatched"] == "refuse",
            options["encoding"],
        )
        return open_documents(self.name, parser, typed, options, context, fixed_names=names)


KIND = TextKind()

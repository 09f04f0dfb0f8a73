"""The texts that a command reads: programs, whose suffix gives the language, and streams of lines.
They are UTF-8, from a file or from standard input, which is written `-`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import harken.api.languages  # noqa: F401  (which suffixes there are)
from harken.cli.reporting import CommandError
from harken.database.language_names import AMOSQL
from harken.statements.language_registry import language_of_suffix, languages

STDIN = "<stdin>"


@dataclass(frozen=True, slots=True)
class Program:
    """`source` is its name in errors; `language` the name of its language."""

    source: str
    text: str
    language: str


def read_program(name: str, spoken: str | None = None) -> Program:
    """`spoken` is the language where no suffix tells."""
    if name == "-":
        return Program(STDIN, decode(sys.stdin.buffer.read(), STDIN), spoken or AMOSQL)
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise _unreadable(name, error) from None
    language = language_of_suffix(Path(name).suffix)
    if language is None and spoken is not None:
        return Program(name, decode(data, name), spoken)
    if language is None:
        known = ", ".join(
            f"{suffix} ({each.title})" for each in languages() for suffix in each.suffixes
        )
        raise _located(
            name,
            "no language has this suffix",
            "unknown-suffix",
            f"known: {known}; or say --language",
        )
    return Program(name, decode(data, name), language.name)


def beside(name: str) -> Path:
    """The directory of a program; the current one for standard input."""
    return Path.cwd() if name in ("-", STDIN) else Path(name).resolve().parent


def lines_of(name: str) -> Iterator[bytes]:
    """The lines of a file or of standard input, as they arrive."""
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as lines:
            yield from lines
    except OSError as error:
        raise _unreadable(name, error) from None


def decode(data: bytes, name: str, lines_before: int = 0) -> str:
    """Decode the text of a file, without the byte-order mark that it may start with."""
    try:
        return data.decode("utf-8" if lines_before else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = lines_before + data.count(b"\n", 0, error.start) + 1
        fault = _located(
            name,
            f"the text is not UTF-8: byte 0x{data[error.start]:02x} in line {line}",
            "not-utf-8",
            f"convert it: iconv -f latin1 -t utf-8 {name}",
        )
        fault.known_line = line
        raise fault from None


def _located(source: str, message: str, code: str, hint: str | None = None) -> CommandError:
    error = CommandError(message, code=code, hint=hint)
    error.source = source
    return error


def _unreadable(name: str, error: OSError) -> CommandError:
    reason = (error.strerror or str(error)).lower()
    return _located(name, f"the file cannot be read: {reason}", "cannot-read")

"""The options and option values that commands share, and the answer to an unknown option."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import harken.api.languages  # noqa: F401  (which languages there are)
from harken.statements.language_registry import languages


@contextmanager
def options_listed(command: TyperCommand | TyperGroup, context: typer.Context) -> Iterator[None]:
    """Answer an unknown option that resembles no other with a list of all options."""
    try:
        yield
    except Exception as error:
        if getattr(error, "option_name", None) and not getattr(error, "possibilities", True):
            known = [name for each in command.get_params(context) for name in each.opts]
            error.possibilities = [name for name in known if name.startswith("-")]  # type: ignore[attr-defined]
        raise


class Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with options_listed(self, ctx):
            return super().parse_args(ctx, args)


class Group(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        with options_listed(self, ctx):
            return super().parse_args(ctx, args)


class Format(enum.StrEnum):
    TEXT = "text"
    JSON = "json"


class ExplainFormat(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    SVG = "svg"


class Engine(enum.StrEnum):
    RESIDENT = "resident"
    LAKE = "lake"


class Strategy(enum.StrEnum):
    AUTO = "auto"
    COUNTING = "counting"
    EXTERNAL = "external"
    MATERIALIZED = "materialized"
    NAIVE = "naive"


class Policy(enum.StrEnum):
    AUTO = "auto"
    RETE = "rete"
    TREAT = "treat"
    ATREAT = "atreat"
    COSMA = "cosma"


class Story(enum.StrEnum):
    LAKE = "lake"
    LANGUAGE = "language"
    TELLING = "telling"


DatabaseFile = Annotated[str, typer.Option("--db", help="The database file.", metavar="PATH")]
LANGUAGES = "|".join(each.name for each in languages())


def language_name(given: str) -> str:
    """The name of a registered language."""
    names = [each.name for each in languages()]
    if given not in names:
        raise typer.BadParameter(f"there is no language {given!r}: say {', '.join(names)}")
    return given


Language = Annotated[
    str | None,
    typer.Option(
        "--language",
        parser=language_name,
        metavar=LANGUAGES,
        help="The language of standard input, and of other suffixes.",
    ),
]
Home = Annotated[Engine, typer.Option("--engine", help="Where new relations are stored.")]
FactDirectory = Annotated[
    str,
    typer.Option("-F", "--fact-dir", metavar="DIR", help="Where Datalog's .input looks for files."),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Change a setting; may be repeated."),
]
Output = Annotated[Format, typer.Option("--format", help="The output format.")]

"""`script/reference`: writes the reference pages from what the code accepts.

Commands are read from the command line's own tables. Whether SQL has a function is found out by
calling it: each name that the parser knows is tried with arguments of the common types. So a page
can be neither incomplete nor ahead of the code.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer.main
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

import harken
from harken.cli import app
from harken.errors import HarkenError
from harken.ir.operations import NAMED_AGGREGATES, OPERATIONS, PRIVATE_OPERATIONS
from harken.lang.datalog.expressions import AGGREGATES, FUNCTORS
from harken.lang.datalog.tokens import DIRECTIVES
from harken.lang.sql.function_rewrites import NAMED as REWRITTEN
from harken.lang.sql.operation_calls import CONSTANTS, NAMED
from harken.lang.sql.parser import DIALECT
from harken.sources.kinds import MODULES, outside_kind
from harken.sources.outside import Option

COLUMNS = {
    "text": "STRING",
    "integer": "BIGINT",
    "double": "DOUBLE",
    "decimal": "DECIMAL(9, 2)",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "boolean": "BOOLEAN",
}
MOST_ARGUMENTS = 3
WINDOW_FUNCTIONS = (
    *("row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist"),
    *("lag", "lead", "first_value", "last_value", "nth_value"),
)
INTERNAL = re.compile(
    r"ts_or_ds|_str$|^(elt_place|locate_from|decode_case|floor_timestamp)$|^bitwise_"
)
"""Names of sqlglot's and of our own rewrites, which nobody types."""
OPERATORS = {"and", "or", "xor", "not", "in", "exists", "like", "ilike", "if_", "var_map"}
"""Names that the parser reads as calls, though nobody writes them so."""
GENERATED = "<!-- Written by script/reference. Do not edit: change the code. -->\n"

# --- the command line ------------------------------------------------------------------------


def command_line() -> str:
    root = typer.main.get_command(app)
    return "\n".join([GENERATED, "# Command line\n", *_commands(root, ("harken",))])


def _commands(command: object, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(command, TyperGroup):
        for name in sorted(command.commands):
            yield from _commands(command.commands[name], (*path, name))
    elif isinstance(command, TyperCommand):
        yield from _command(command, path)


def _command(command: TyperCommand, path: tuple[str, ...]) -> Iterator[str]:
    arguments = [each for each in command.params if isinstance(each, TyperArgument)]
    options = [each for each in command.params if isinstance(each, TyperOption)]
    usage = " ".join([*path, *map(_written, arguments)])
    yield f"## {' '.join(path)}\n"
    yield f"{_prose(command.help or '')}\n"
    yield f"```\n{usage}{' [OPTIONS]' if options else ''}\n```\n"
    shown = [each for each in options if not each.hidden and each.name != "help"]
    if shown:
        yield "| option | what it does | default |\n| --- | --- | --- |"
        yield from map(_option, shown)
        yield ""


def _written(argument: TyperArgument) -> str:
    name = (argument.metavar or argument.name or "").upper()
    name = f"{name}..." if argument.nargs == -1 else name
    return name if argument.required else f"[{name}]"


def _option(option: TyperOption) -> str:
    names = ", ".join(f"`{each}`" for each in (*option.opts, *option.secondary_opts))
    default = option.default
    is_shown = isinstance(default, str | int | float) and not isinstance(default, bool)
    return f"| {names} | {_prose(option.help or '')} | {f'`{default}`' if is_shown else ''} |"


def _prose(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# --- functions -------------------------------------------------------------------------------


def functions() -> str:
    rows = "\n".join(
        f"| `{name}` | {', '.join(map(str, counts))} |" for name, counts in sql_functions()
    )
    return "\n".join(
        [
            GENERATED,
            "# Functions\n",
            "What each language accepts. Operators and forms with a grammar of their own (`CASE`,",
            "`CAST`, `EXTRACT(YEAR FROM day)`) are on the pages of the languages.\n",
            "## SQL\n",
            "Each means what it means in Spark with ANSI mode on.\n",
            "| function | arguments |\n| --- | --- |",
            f"{rows}\n",
            "Window functions, each with `OVER`:\n",
            _listed(WINDOW_FUNCTIONS),
            "## AMOSQL\n",
            _listed(sorted(OPERATIONS.keys() - PRIVATE_OPERATIONS)),
            "Aggregates:\n",
            _listed(sorted(each for each in NAMED_AGGREGATES if " " not in each)),
            "## Datalog\n",
            "Functors:\n",
            _listed(sorted(FUNCTORS)),
            "Aggregates:\n",
            _listed(sorted(AGGREGATES)),
            "Directives:\n",
            _listed(f".{each}" for each in sorted(DIRECTIVES)),
        ]
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in names) + "\n"


def sql_functions() -> Iterator[tuple[str, list[int]]]:
    """Each function, with the numbers of arguments that it takes."""
    with harken.connect() as db:
        columns = ", ".join(f"{name}_ {kind}" for name, kind in COLUMNS.items())
        db.sql(f"CREATE TABLE t ({columns})")
        for name in known_names():
            counts = [count for count in range(MOST_ARGUMENTS + 1) if _is_accepted(db, name, count)]
            if counts:
                yield name, counts


def known_names() -> list[str]:
    """Every name that the parser or the translation knows as a function."""
    of_parser = {name.lower() for name in DIALECT.parser_class.FUNCTIONS}
    of_ours = {*NAMED, *CONSTANTS, *(name for name, _ in REWRITTEN)}
    names = (of_parser | of_ours) - OPERATORS
    return sorted(each for each in names if each.isidentifier() and not INTERNAL.search(each))


def _is_accepted(db: harken.Database, name: str, count: int) -> bool:
    return any(_runs(db, name, kinds) for kinds in itertools.product(COLUMNS, repeat=count))


def _runs(db: harken.Database, name: str, kinds: tuple[str, ...]) -> bool:
    try:
        db.sql(f"SELECT {name}({', '.join(f'{each}_' for each in kinds)}) FROM t")
    except HarkenError:
        return False
    return True


# --- kinds of sources ------------------------------------------------------------------------


def sources() -> str:
    """The options of every kind that comes with Harken."""
    parts = [
        GENERATED,
        "# Kinds of sources\n",
        "What each kind is for is on the page [Sources](../sources.md).\n",
    ]
    for name in sorted(MODULES):
        kind = outside_kind(name)
        ways = ", ".join(f"`{each}`" for each in kind.captures)
        parts += [
            f"## `{name}`: {kind.title}\n",
            f"Capture: {ways}.\n",
            "| option | type | default | what it is |",
            "| --- | --- | --- | --- |",
            *map(_option_row, kind.options),
            "",
        ]
    return "\n".join(parts)


def _option_row(option: Option) -> str:
    type_ = " or ".join(f"`{each}`" for each in option.choices) or option.type
    default = "needed" if option.required else _default(option.default)
    secret = " It is never shown." if option.secret else ""
    return f"| `{option.name}` | {type_} | {default} | {option.about}{secret} |"


def _default(value: object) -> str:
    return "" if value in (None, (), "") else f"`{value}`"


PAGES = {"command-line": command_line, "functions": functions, "sources": sources}


def main(directory: str, *names: str) -> None:
    for name in names or PAGES:
        Path(directory, f"{name}.md").write_text(PAGES[name](), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

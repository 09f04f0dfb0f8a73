"""`harken check`: what rules may do to each other, before they run."""

from __future__ import annotations

from typing import Annotated

import typer

import harken
from harken.cli.options import DatabaseFile, Format, Language, Output
from harken.cli.program_texts import beside, read_program
from harken.cli.reporting import reported
from harken.cli.sessions import command_line_spark
from harken.database.results import to_json


def check(
    files: Annotated[list[str], typer.Argument(help="Programs; - is standard input.")],
    db: DatabaseFile = ":memory:",
    format: Output = Format.TEXT,
    language: Language = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if anything is found.")
    ] = False,
) -> None:
    """Say what the rules of a program may do to each other: cycles without end, rules that can
    never fire, and pairs whose order matters and has no priority.

    Nothing of the file runs or stays. With `--db`, it may mention what that database has.
    """
    source: str | None = None
    number = 0
    with reported(format, lambda: source):
        for name in files:
            source = name
            program = read_program(name, language)
            with harken.connect(db, spark=command_line_spark) as database:
                database.find_modules_in(beside(name))
                findings = database.check(program.text, program.language, name)
            for each in findings:
                number += 1
                if format is Format.JSON:
                    found = {"kind": "finding", "what": each.kind, "rules": list(each.rules)}
                    print(to_json({**found, "message": each.message, "hint": each.hint}))
                else:
                    print(f"{name}: [{each.kind}] {each.message}\n  hint: {each.hint}")
            if not findings and format is Format.TEXT:
                print(f"{name}: nothing was found")
        if strict and number:
            raise typer.Exit(1)

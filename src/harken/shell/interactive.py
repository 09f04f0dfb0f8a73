"""The shell at a terminal: the prompt, its keys, its history, and the way out."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import DynamicLexer, Lexer, PygmentsLexer
from pygments.lexers.prolog import PrologLexer
from pygments.lexers.sql import SqlLexer

import harken
from harken.database.language_names import AMOSQL, SQL
from harken.shell.completion import NameCompleter
from harken.shell.display import Tables
from harken.shell.highlight import AmosqlLexer
from harken.shell.loop import Loop, Quit
from harken.shell.preferences import Preferences, read_preferences, write_preferences
from harken.statements.language_registry import language_named

WELCOME = """\
Harken {version}, {path}. You speak {title}: statements end with `{end}`.
`help` shows how to begin, \\? the commands of the shell; Ctrl-D leaves."""
ASKED = "A transaction is open. Commit it, roll it back, or stay? [c/r/S] "


def interact(
    db: harken.Database,
    language: str | None = None,
    path: str = ":memory:",
    home: Path | None = None,
) -> None:
    """Read input until Ctrl-D or `quit`."""
    home = home or Path.home()
    preferences = read_preferences(home / ".harken_shell")
    display = Tables()
    display.timing, display.paging = preferences.timing, preferences.paging
    loop = Loop(db, language or known_language(preferences.language), display)
    spoken = language_named(loop.language)
    shown = "in memory" if path == ":memory:" else path
    print(
        WELCOME.format(version=harken.__version__, path=shown, title=spoken.title, end=spoken.end)
    )
    session = prompt_session(loop, history(home / ".harken_history"))
    while True:
        try:
            loop.run(session.prompt(lambda: prompt_text(db, loop.language)))
        except KeyboardInterrupt:
            keep_typed(session)
        except (EOFError, Quit):
            if may_leave(loop, session):
                break
    remembered = Preferences(loop.language, display.timing, display.paging)
    write_preferences(home / ".harken_shell", remembered)


def known_language(name: str) -> str:
    try:
        return language_named(name).name
    except harken.HarkenError:
        return SQL


def prompt_session(loop: Loop, kept: History) -> PromptSession[str]:
    lexers: dict[str, Lexer] = {AMOSQL: AmosqlLexer(), SQL: PygmentsLexer(SqlLexer)}
    datalog = PygmentsLexer(PrologLexer)
    return PromptSession(
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "> ".rjust(width),
        history=kept,
        enable_history_search=True,
        completer=NameCompleter(loop.db, lambda: loop.language),
        complete_while_typing=False,
        lexer=DynamicLexer(lambda: lexers.get(loop.language, datalog)),
        key_bindings=keys(loop),
    )


def prompt_text(db: harken.Database, language: str = SQL) -> str:
    return f"{language}*> " if db.in_transaction else f"{language}> "


def keep_typed(session: PromptSession[str]) -> None:
    """Ctrl-C drops what is typed; the history still has it."""
    typed = session.default_buffer.text
    if typed.strip():
        session.history.append_string(typed)


def may_leave(loop: Loop, session: PromptSession[str]) -> bool:
    """Ask what becomes of an open transaction; true when none is open any more."""
    if not loop.db.in_transaction:
        return True
    try:
        answer = PromptSession[str]().prompt(ASKED).strip().lower()[:1]
    except KeyboardInterrupt:
        return False
    except EOFError:  # the terminal is gone, or Ctrl-D again: nobody is there to ask
        loop.finish()
        return True
    if answer == "c":
        return loop.commit()
    if answer == "r":
        loop.db.rollback()
        return True
    return False


def history(path: Path) -> History:
    """The history, in a file that only its owner can read, or in memory if the file cannot be
    written."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        print(
            f"{path} cannot be written: the history of this session is not saved", file=sys.stderr
        )
        return InMemoryHistory()
    return FileHistory(str(path))


def keys(loop: Loop) -> KeyBindings:
    """Enter runs complete input, and otherwise starts a new line."""
    bindings = KeyBindings()

    @bindings.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if loop.is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings

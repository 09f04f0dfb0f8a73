"""The shell at a terminal: the prompt, its keys, and its history."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

import harken
from harken.database.language_names import AMOSQL
from harken.shell.completion import NameCompleter
from harken.shell.highlight import AmosqlLexer
from harken.shell.loop import Loop, Quit

WELCOME = """\
Harken {version}. Statements end with `;`, `help` helps, Ctrl-D leaves.
What you do not `commit;` is rolled back when you leave."""


def interact(loop: Loop) -> None:
    """Read input until Ctrl-D or `quit`."""
    print(WELCOME.format(version=harken.__version__))
    session = prompt_session(loop)
    while True:
        try:
            loop.run(session.prompt(lambda: prompt_text(loop.db, loop.language)))
        except KeyboardInterrupt:
            continue
        except (EOFError, Quit):
            return


def prompt_session(loop: Loop) -> PromptSession[str]:
    return PromptSession(
        multiline=True,
        prompt_continuation=lambda width, line, wrapped: "> ".rjust(width),
        history=history(Path.home() / ".harken_history"),
        completer=NameCompleter(loop.db, lambda: loop.language),
        complete_while_typing=False,
        lexer=AmosqlLexer(),
        key_bindings=keys(loop),
    )


def prompt_text(db: harken.Database, language: str = AMOSQL) -> str:
    word = "harken" if language == AMOSQL else f"harken {language}"
    return f"{word}*> " if db.in_transaction else f"{word}> "


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

"""`NOTIFY COMMAND '/usr/local/bin/page --urgent'`: a program of the machine, if the operator allows
commands.

The address is split into words as a shell does, and no shell runs. The program reads the message
as JSON from its standard input, and its id is in `HARKEN_MESSAGE_ID`. It has accepted the message
if it ends with 0.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess

from harken.database.messages import Recipient, StoredMessage
from harken.database.results import to_json
from harken.errors import HarkenError, ValueFault
from harken.notify.channel_registry import NotDelivered, Surroundings
from harken.notify.channels.file_lines import as_object
from harken.notify.texts import one_line

SECONDS = 60.0
"""How long a command may take."""
LONGEST_COMPLAINT = 200
"""Characters of its standard error that are shown."""
KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SYSTEMROOT")
"""The variables of our environment that a command sees: others may hold secrets."""


class Commands:
    name = "command"

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        if not around.setting("allow_commands"):
            raise HarkenError(
                "commands are not allowed here",
                code="not-allowed",
                hint="the operator can allow them: --set allow_commands=true",
            )
        _words(recipient.address)

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        self.check(message.message.recipient, around)
        words = _words(message.message.recipient.address)
        environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**environment, "HARKEN_MESSAGE_ID": message.id},
                start_new_session=True,
            )
        except OSError as error:
            raise NotDelivered(f"{words[0]} cannot be run: {error.strerror or error}") from error
        except ValueError as error:
            raise NotDelivered(f"{words[0]!r} cannot be run: {error}", retry=False) from error
        with process:
            try:
                _, complaint = process.communicate(
                    to_json(as_object(message)).encode(), timeout=SECONDS
                )
            except subprocess.TimeoutExpired:
                _end(process)
                raise NotDelivered(f"{words[0]} took longer than {SECONDS:g} s") from None
        if process.returncode:
            said = one_line(complaint.decode(errors="replace"), LONGEST_COMPLAINT)
            raise NotDelivered(f"{words[0]} ended with {process.returncode}: {said}".rstrip(": "))


def _end(process: subprocess.Popen[bytes]) -> None:
    """The command and what it has started: it leads a process group of its own."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


def _words(address: str) -> list[str]:
    try:
        words = shlex.split(address)
    except ValueError as error:
        raise ValueFault(
            f"the command {address!r} cannot be split into words: {error}", code="bad-value"
        ) from error
    if not words:
        raise ValueFault("the command is empty", code="bad-value")
    return words

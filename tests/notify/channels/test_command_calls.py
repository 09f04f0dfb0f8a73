"""NOTIFY COMMAND: a program of the machine, without a shell, if the operator allows it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from harken.errors import HarkenError
from harken.notify.channel_registry import NotDelivered
from harken.notify.channels import command_calls
from harken.notify.channels.command_calls import Commands
from tests.notify.channels.sample_messages import around, message

ALLOWED = around(allow_commands=True)


def command(tmp_path: Path, text: str, *words: str) -> str:
    script = tmp_path / "page.py"
    script.write_text(text, "utf-8")
    return shlex.join([sys.executable, str(script), *words])


def test_the_program_reads_the_message(tmp_path: Path) -> None:
    keep = """import os, sys
with open(sys.argv[1], "w") as file:
    file.write(os.environ["HARKEN_MESSAGE_ID"] + sys.stdin.read())"""
    out = tmp_path / "$(touch oops); out"
    Commands().send(message("command", command(tmp_path, keep, str(out))), ALLOWED)
    text = out.read_text("utf-8")
    assert text.startswith("msg_1")
    assert json.loads(text[len("msg_1") :])["inserted"] == [{"item": "pen", "left": 2}]


def test_a_program_sees_no_secrets_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARKEN_SECRETS_KEY", "key")
    look = "import os, sys; sys.exit('HARKEN_SECRETS_KEY' in os.environ)"
    Commands().send(message("command", command(tmp_path, look)), ALLOWED)


def test_a_program_that_fails_has_not_accepted_it(tmp_path: Path) -> None:
    fail = "import sys; sys.exit('no\\nroute')"
    with pytest.raises(NotDelivered, match="ended with 1: no route"):
        Commands().send(message("command", command(tmp_path, fail)), ALLOWED)
    with pytest.raises(NotDelivered, match="cannot be run"):
        Commands().send(message("command", "/no/such/program"), ALLOWED)


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_calls, "SECONDS", 0.2)
    hang = "import signal; signal.pause()"
    with pytest.raises(NotDelivered, match="took longer"):
        Commands().send(message("command", command(tmp_path, hang)), ALLOWED)


@pytest.mark.parametrize("call", ["check", "send"])
def test_commands_are_the_operators_to_allow(call: str) -> None:
    sent = message("command", "true")
    what = sent if call == "send" else sent.message.recipient
    with pytest.raises(HarkenError, match="not allowed") as caught:
        getattr(Commands(), call)(what, around())
    assert caught.value.code == "not-allowed"


@pytest.mark.parametrize("address", ["", "  ", "page 'ann"])
def test_a_command_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(HarkenError, match="command"):
        Commands().check(message("command", address).message.recipient, ALLOWED)

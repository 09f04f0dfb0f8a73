"""The `harken` command, run in this process, with what it printed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harken import cli


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def results(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Outcome]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `harken ARGUMENTS...` in this process."""

    def run(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "argv", ["harken", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # typer puts its own there
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return Outcome(int(ended.value.code or 0), *capsys.readouterr())

    return run


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str | bytes, name: str = "p.amosql") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write

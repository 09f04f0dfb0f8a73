"""`harken serve` as a process, and the description of its API."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import harken
from harken import cli
from harken.server.openapi import description
from harken.server.server_process import listen
from tests.harness.patience import PATIENCE

ROOT = Path(__file__).parents[2]


def test_the_description_of_the_api_is_checked_in() -> None:
    written = (ROOT / "docs/openapi.json").read_text("utf-8")
    assert written == description(), "python -m harken.server.openapi > docs/openapi.json"


def test_importing_harken_loads_nothing_of_the_service() -> None:
    check = "sys.exit(bool({'fastapi', 'uvicorn', 'pydantic'} & sys.modules.keys()))"
    program = f"import sys, harken; harken.Client('http://127.0.0.1:1'); {check}"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_harken_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="Clint"):
        harken.Clint  # noqa: B018


def test_the_command_serves_until_a_signal(path: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "harken", "serve", "--db", path, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    url = process.stdout.readline().split(" at ")[1].strip()
    changes = harken.Client(url).follow("low")
    assert next(changes).plus == [("pen", 5)]
    with harken.connect(path) as db:
        db.sql("INSERT INTO stock VALUES ('cap', 1)")
    assert next(changes).plus == [("cap", 1)]
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    assert process.stderr.read() == ""
    changes.close()  # type: ignore[attr-defined]
    process.stdout.close()
    process.stderr.close()


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(cli.app, ["serve", *arguments])
    assert done.exit_code == 1
    return done.stderr


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert "there is no database" in refused("--db", str(tmp_path / "shp.db"))
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_taken_is_named(path: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"[cannot-listen] cannot listen at 127.0.0.1:{port}" in refused(
            "--db", path, "--port", str(port)
        )


def test_the_token_may_be_in_the_environment(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARKEN_TOKEN", "")
    assert "the token is empty" in refused("--db", path, "--host", "0.0.0.0")


def test_a_client_says_that_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    asks: list[Callable[[harken.Client], object]] = [
        lambda client: client.views(),
        lambda client: next(client.follow("low")),
    ]
    for ask in asks:
        with pytest.raises(harken.HarkenError, match="does not answer"):
            ask(harken.Client(url))
    for wrong in ("shop.db", "http://localhost:port", "http://[::1"):
        with pytest.raises(harken.HarkenError, match="is not the address"):
            harken.Client(wrong)


def test_an_address_of_another_machine_is_not_blamed_on_the_port() -> None:
    with pytest.raises(harken.HarkenError, match="is not an address of this machine") as caught:
        listen("192.0.2.1", 0)
    assert "--host" in (caught.value.hint or "")

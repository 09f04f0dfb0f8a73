"""The options of `harken serve`, its check, its parts and its log."""

from __future__ import annotations

import io
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

import harken
from harken import HarkenError, cli
from harken.server.serve_options import OPTIONS, serve_options
from harken.server.service_log import service_log
from tests.harness.patience import PATIENCE
from tests.server.resources.asking import Asking
from tests.server.serving import Served

ROOT = Path(__file__).parents[2]
WRITTEN = """
port = 9001
host = "localhost"
log_format = "json"
[settings]
statement_timeout = 7
row_limit = 100
"""


def test_a_flag_counts_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "harken.toml"
    file.write_text(WRITTEN)
    environment = {"HARKEN_HOST": "127.0.0.2", "HARKEN_ROW_LIMIT": "5", "HARKEN_TOKEN": "t"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        found = serve_options(
            {"port": 0, "host": None}, {"statement_timeout": "3"}, str(file), environment
        )
    assert (found["port"], found["host"], found["log_format"]) == (0, "127.0.0.2", "json")
    assert (found.token, found["log_level"]) == ("t", "warning")
    assert found.settings["statement_timeout"] == 3.0
    assert found.settings["row_limit"] == 5


@pytest.mark.parametrize(
    ("written", "said", "hint"),
    [
        ("port = ", "this is no TOML", "NAME = VALUE"),
        ("prt = 1", "there is no option prt", "port"),
        ("row_limit = 1", "there is no option row_limit", "below [settings]"),
        ("port = 70000", "port", ""),
        ('log_format = "xml"', "log_format cannot be xml", "text or json"),
        ('only = "both"', "only cannot be both", "api or worker"),
        ("[settings]\nrow_limt = 1", "there is no setting row_limt", "row_limit"),
        ("settings = 5", "settings is a table", ""),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, written: str, said: str, hint: str) -> None:
    file = tmp_path / "harken.toml"
    file.write_text(written)
    with pytest.raises(HarkenError) as caught:
        serve_options({}, {}, str(file), {})
    assert said in caught.value.message
    assert hint in str(caught.value.hint)


def test_every_option_is_in_the_table_of_the_page() -> None:
    page = (ROOT / "docs/operating.md").read_text("utf-8")
    for each in OPTIONS:
        flag, variable = each.name.replace("_", "-"), each.variable
        assert f"| `--{flag}` | `{variable}` | `{each.name}` |" in page, each.name


def checked(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli.app, ["serve", "--check", *arguments])
    return done.exit_code, done.stdout + done.stderr


def test_a_check_says_what_is_in_force_or_wrong(path: str, tmp_path: Path) -> None:
    status, said = checked("--db", path, "--port", "0", "--token", "secret")
    assert (status, "token = given" in said, "secret" in said) == (0, True, False)
    assert said.endswith(f"{path} can be served\n")
    for wrong, words in (
        (("--host", "0.0.0.0"), "needs accounts or a token"),
        (("--tls-cert", "nothing.pem"), "cannot be used"),
        (("--set", "row_limt=1"), "there is no setting"),
        (("--config", str(tmp_path / "no.toml")), "cannot be read"),
        (("--only", "all"), "only cannot be all"),
    ):
        status, said = checked("--db", path, "--port", "0", *wrong)
        assert (status, words in said) == (1, True), said


def started(path: str, *more: str) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "harken", "serve", "--db", path, "--port", "0", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline()


def ended(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return said


def test_requests_and_what_is_due_may_be_two_processes(path: str) -> None:
    served, line = started(path, "--only", "api", "--log-level", "info", "--log-format", "json")
    client = harken.Client(line.split(" at ")[1].strip())
    body = {"name": "few", "query": "SELECT item FROM low", "trigger": "EVERY SECOND"}
    client.request("POST", "/continual-queries", body, headers={"X-Request-ID": "mine"})
    worker, line = started(path, "--only", "worker", "--log-level", "info")
    assert line == f"doing what is due in {path}\n"
    while client.request("GET", "/continual-queries/few")["executions"] < 2:
        pass
    assert "executed few" in ended(worker)
    lines = [json.loads(each) for each in ended(served).splitlines()]
    (made,) = [each for each in lines if each.get("request") == "mine"]
    assert (made["logger"], made["method"], made["status"]) == ("harken.requests", "POST", 201)
    assert made["transaction"] >= 0
    assert made["user"] == "operator"


def test_a_line_of_the_log_is_one_line() -> None:
    shown = io.StringIO()
    with service_log("info", "text", shown):
        logging.getLogger("harken.server").info("a name\nERROR harken.server: forged")
    assert len(shown.getvalue().splitlines()) == 1
    shown = io.StringIO()
    with service_log("info", "json", shown):
        logging.getLogger("harken.server").info("a\nb", extra={"members": {"query": "few"}})
    line = json.loads(shown.getvalue())
    assert (line["message"], line["query"], line["level"]) == ("a\nb", "few", "info")


def test_every_answer_has_the_id_of_its_request(serve: Callable[..., Served]) -> None:
    api = Asking(serve())
    assert api.get("/views", x_request_id="a-1").headers["x-request-id"] == "a-1"
    assert api.get("/relations/no", x_request_id="a-2").body["request"] == "a-2"
    assert api.get("/views", x_request_id="a b\tc").headers["x-request-id"] != "a b\tc"
    assert api.post("/transactions", {}, x_request_id="a-3").headers["x-request-id"] == "a-3"

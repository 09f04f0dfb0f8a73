"""Who may ask, and from where."""

from __future__ import annotations

import http.client
from collections.abc import Callable

import pytest
from serving import Served
from typer.testing import CliRunner

import harken
from harken import HarkenError, cli
from harken.server.access import check_start

TOKEN = "s3cret-é"
VIEWS = "/api/v1/views"
Serve = Callable[..., Served]


def test_a_token_is_needed_where_there_is_one(serve: Serve) -> None:
    served = serve(token=TOKEN)
    assert served.client.views()
    latin = TOKEN.encode().decode("latin-1")
    wrong = [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {latin}"}]
    wrong += [{"authorization": "Bearer "}, {"authorization": "Bearer s3cret"}]
    for headers in wrong:
        status, problem = served.ask("GET", VIEWS, headers=headers)
        assert (status, problem["code"]) == (401, "not-allowed")
        assert "token" in problem["message"]
        assert TOKEN not in str(problem)
    for path in (
        "/api/v1/views/low/events",
        "/api/v1/views/low",
        "/api/v1/views/low/changes?since=0",
    ):
        assert served.ask("GET", path)[0] == 401
    for path in ("/api/v1/transactions", "/api/v1/sql"):
        assert served.ask("POST", path, {"text": "DROP VIEW low"})[0] == 401
    with pytest.raises(HarkenError, match="token"):
        next(harken.Client(served.url, "wrong").follow("low"))


def test_a_token_may_have_any_letters(serve: Serve) -> None:
    token = "żółć-é"
    served = serve(token=token)
    assert harken.Client(served.url, token).views()
    sent = {"authorization": f"Bearer {token}".encode().decode("latin-1")}
    assert served.ask("GET", VIEWS, headers=sent)[0] == 200


def test_a_stream_takes_the_token_as_a_parameter(serve: Serve) -> None:
    served = serve(token="a b&c")
    stream = served.stream("/api/v1/views/low/events?token=a+b%26c")
    assert stream.take(1)[0][0] == "snapshot"
    stream.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:1"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"origin": "http://localhost:3000"}, 200),
        ({"host": "evil.example"}, 401),
        ({"host": "127.0.0.1.evil.example"}, 401),
        ({"origin": "https://evil.example"}, 401),
        ({"origin": "http://localhost.evil.example"}, 401),
        ({"origin": "null"}, 401),
    ],
    ids=str,
)
def test_without_a_token_only_this_machine_is_answered(
    served: Served, headers: dict[str, str], status: int
) -> None:
    assert served.ask("GET", VIEWS, headers=headers)[0] == status
    given = {"text": "SELECT 1"}
    assert served.ask("POST", "/api/v1/sql", given, headers=headers)[0] == status


def test_a_form_of_another_page_changes_nothing(served: Served) -> None:
    """A browser sends such a request without asking first."""
    status, _ = served.ask(
        "POST", "/api/v1/sql", b'{"text": "DROP VIEW low"}', {"content-type": "text/plain"}
    )
    assert status == 400
    assert "low" in [each["name"] for each in served.client.views()]


def test_pages_of_this_machine_may_read_answers(served: Served) -> None:
    asked = {"origin": "http://127.0.0.1:3000", "access-control-request-method": "POST"}
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request("OPTIONS", "/api/v1/sql", headers=asked)
    answer = connection.getresponse()
    answer.read()
    assert answer.headers["access-control-allow-origin"] == asked["origin"]
    connection.request("OPTIONS", "/api/v1/sql", headers={**asked, "origin": "http://evil.example"})
    answer = connection.getresponse()
    answer.read()
    assert answer.headers["access-control-allow-origin"] is None
    connection.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "shop.example"])
def test_a_place_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(HarkenError, match="needs a token"):
        check_start(host, None)
    with pytest.raises(HarkenError, match="empty"):
        check_start(host, "")
    check_start(host, "a token")


def test_the_command_does_not_start_without_a_token(path: str) -> None:
    done = CliRunner().invoke(cli.app, ["serve", "--db", path, "--host", "0.0.0.0"])
    assert done.exit_code == 1
    assert "[not-allowed] on 0.0.0.0 others than this machine" in done.stderr

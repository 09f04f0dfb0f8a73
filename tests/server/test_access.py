"""Who may ask, and from where."""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

import harken
from harken import HarkenError, cli
from harken.server.access import check_start
from tests.server.serving import Served

TOKEN = "s3cret-é"
VIEWS = "/api/v1/views"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"
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
        ({"host": "LocalHost:1"}, 200),
        ({"origin": "HTTP://LOCALHOST:3000"}, 200),
        ({"sec-fetch-site": "same-origin", "user-agent": BROWSER}, 200),
        ({"sec-fetch-site": "none", "user-agent": BROWSER}, 200),
        ({"sec-fetch-site": "cross-site", "origin": "http://localhost:3000"}, 200),
        ({"sec-fetch-site": "cross-site"}, 401),
        ({"sec-fetch-site": "same-site"}, 401),
        ({"sec-fetch-site": "cross-site", "origin": "https://evil.example"}, 401),
        ({"user-agent": BROWSER}, 401),
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


def test_an_image_of_another_page_begins_nothing(served: Served, path: str) -> None:
    """A browser sends no Origin with `<img src="http://127.0.0.1:8765/...">`."""
    asked = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    for what in ("?where=quantity%3E1", "/changes?since=0", "/events"):
        assert served.ask("GET", f"{VIEWS}/low{what}", headers=asked)[0] == 401
    assert served.ask("POST", f"{VIEWS}/low/keep", {}, asked)[0] == 401
    assert logs_of(path) == 0


def test_asking_changes_nothing(served: Served, path: str) -> None:
    assert served.ask("GET", f"{VIEWS}/low?keep=true")[0] == 400
    for what in ("", "?where=quantity%3E1", "/changes?since=0", "/changes?since=0&net=true"):
        assert served.ask("GET", f"{VIEWS}/low{what}")[0] == 200
    assert logs_of(path) == 0
    assert served.ask("POST", f"{VIEWS}/low/keep", {"where": "quantity > 1"})[0] == 200
    assert logs_of(path) == 1


def logs_of(path: str) -> int:
    with harken.connect(path) as db:
        return len(db.internals.monitors.logs.all())


@pytest.mark.parametrize(
    ("method", "asked", "status"),
    [
        ("GET", "/?view=low", 200),
        ("GET", VIEWS, 200),
        ("GET", f"{VIEWS}/low/events", 200),
        ("GET", "/api/v1/openapi.json", 200),
        ("GET", "/nothing", 404),
        ("POST", "/api/v1/sql", 400),
    ],
)
def test_no_page_frames_or_embeds_an_answer(
    served: Served, method: str, asked: str, status: int
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request(method, asked)
    answer = connection.getresponse()
    assert answer.status == status
    assert answer.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    connection.close()


def test_the_script_of_the_page_is_the_only_one_that_runs(served: Served) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request("GET", "/?view=low")
    answer = connection.getresponse()
    page = answer.read().decode()
    connection.close()
    (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in answer.headers["content-security-policy"]
    assert not re.search(r"\son\w+=|\sstyle=", page)


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
    with pytest.raises(HarkenError, match="needs accounts or a token"):
        check_start(host, None)
    with pytest.raises(HarkenError, match="empty"):
        check_start(host, "")
    check_start(host, "a token")


def test_the_command_does_not_start_without_a_token(path: str) -> None:
    done = CliRunner().invoke(cli.app, ["serve", "--db", path, "--host", "0.0.0.0"])
    assert done.exit_code == 1
    assert "[not-allowed] other machines can reach" in done.stderr

"""A page is whole, or it is a fault that says what to do and tells no secrets."""

from __future__ import annotations

import gzip
import ipaddress
import random
import socket
import ssl
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harken import network_guard
from harken.sources import guarded_transport
from harken.sources.host_queue import HostQueue
from harken.sources.safe_fetch import FetchFault, FetchLimits, Page, SafeFetch
from tests.harness.web_site import Answer, Site, Write, web_site


class Clock:
    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


@pytest.fixture
def site() -> Iterator[Site]:
    with web_site() as found:
        yield found


def fetcher(**arguments: Any) -> SafeFetch:
    limits = FetchLimits(**{"seconds": 20.0, **arguments.pop("limits", {})})
    arguments.setdefault("hosts", HostQueue())
    return SafeFetch(limits, **{"allow_private_addresses": True, **arguments})


def got(url: str, **arguments: Any) -> Page:
    with fetcher(**arguments) as fetch:
        page = fetch.get(url)
    assert page is not None
    return page


def fault(url: str, get: dict[str, Any] | None = None, **arguments: Any) -> FetchFault:
    with fetcher(**arguments) as fetch, pytest.raises(FetchFault) as raised:
        fetch.get(url, **(get or {}))
    return raised.value


def test_a_page_has_its_bytes_type_and_links(site: Site) -> None:
    site.pages["/a"] = Answer(
        b"<p>x", headers={"Link": '</a?page=2>; rel="next"', "Last-Modified": RECENT}
    )
    page = got(site.url("/a"), agent="Harken test")
    assert (page.body, page.media_type, page.charset) == (b"<p>x", "text/html", "utf-8")
    assert page.links == {"next": site.url("/a?page=2")}
    assert str(page.modified) == "2026-10-21 07:28:00+00:00"
    assert site.asked[0][1]["user-agent"] == "Harken test"


RECENT = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    "header", [("ETag", '"7"', "if-none-match"), ("Last-Modified", RECENT, "if-modified-since")]
)
def test_an_unchanged_page_is_not_sent_again(site: Site, header: tuple[str, str, str]) -> None:
    name, value, condition = header
    site.pages["/a"] = lambda asked: (
        Answer(status=304, type="")
        if asked.get(condition) == value
        else Answer(b"long", headers={name: value})
    )
    with fetcher() as fetch:
        page = fetch.get(site.url("/a"))
        assert page is not None
        assert fetch.get(site.url("/a"), since=page.validators) is None
        site.pages["/a"] = Answer(b"new")
        changed = fetch.get(site.url("/a"), since=page.validators)
    assert changed is not None
    assert changed.body == b"new"


def test_equal_bytes_are_unchanged_without_any_header(site: Site) -> None:
    site.pages["/a"] = Answer(b"same")
    with fetcher() as fetch:
        page = fetch.get(site.url("/a"))
        assert page is not None
        assert fetch.get(site.url("/a"), since=page.validators) is None
        assert fetch.get(site.url("/a"), since="no validators") is not None


def test_conditions_go_only_to_the_address_that_gave_them(site: Site) -> None:
    site.pages["/a"] = Answer(b"a", headers={"ETag": '"1"'})
    site.pages["/b"] = Answer(b"b", headers={"ETag": '"1"'})
    with fetcher() as fetch:
        page = fetch.get(site.url("/a"))
        assert page is not None
        assert fetch.get(site.url("/b"), since=page.validators) is not None
    assert "if-none-match" not in site.asked[-1][1]


def test_unchanged_without_being_asked_is_a_fault(site: Site) -> None:
    site.pages["/a"] = Answer(status=304, type="")
    assert fault(site.url("/a")).status == 304


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("file:///etc/passwd", "not-allowed"),
        ("ftp://example.org/", "not-allowed"),
        ("gopher://example.org/", "not-allowed"),
        ("javascript:alert(1)", "not-allowed"),
        ("http://", "bad-option"),
        ("/prices", "not-allowed"),
        ("http://[::1", "bad-option"),
        ("http://exa\0mple.org/", "bad-option"),
        ("http://a.org/" + "x" * 9_000, "bad-option"),
        (None, "bad-option"),
        (7, "bad-option"),
    ],
)
def test_only_addresses_of_web_pages_are_fetched(url: Any, code: str) -> None:
    assert fault(url).code == code


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0.0.0.0", "[::ffff:127.0.0.1]"]
)
def test_private_addresses_are_refused_however_they_are_written(site: Site, host: str) -> None:
    site.pages["/"] = Answer(b"secret")
    found = fault(site.url("/", host), allow_private_addresses=False)
    assert found.code == "not-allowed"
    assert "HARKEN_ALLOW_PRIVATE_ADDRESSES" in (found.hint or "")
    assert site.asked == []


@pytest.fixture
def public_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 counts as public, so that a redirect from there to another address is one from a
    public host. No test can have a public address of its own."""
    special_use = network_guard.special_use

    def patched(address: Any) -> str | None:
        is_public = ipaddress.ip_address(str(address)) == ipaddress.ip_address("127.0.0.1")
        return None if is_public else special_use(address)

    monkeypatch.setattr(network_guard, "special_use", patched)
    monkeypatch.setattr(guarded_transport, "special_use", patched)


@pytest.mark.usefixtures("public_loopback")
def test_a_redirect_to_a_private_address_is_refused(site: Site) -> None:
    with web_site("127.0.0.2") as inner:
        inner.pages["/admin"] = Answer(b"secret")
        site.pages["/a"] = Answer(status=302, headers={"Location": inner.url("/admin?key=geheim")})
        found = fault(site.url("/a"), allow_private_addresses=False, limits={"pause": 0})
        assert found.code == "not-allowed"
        assert "geheim" not in found.report()
        assert inner.asked == []


@pytest.mark.usefixtures("public_loopback")
def test_a_name_that_resolves_differently_the_second_time_gains_nothing(site: Site) -> None:
    answers = iter(["127.0.0.1", "127.0.0.2", "127.0.0.2"])

    def resolve(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    with web_site("127.0.0.2") as inner:
        inner.pages["/"] = Answer(b"secret")
        moved = {"Location": f"http://rebound.example:{inner.port}/"}
        site.pages["/"] = Answer(status=302, headers=moved)
        url = site.url("/", "rebound.example")
        found = fault(url, allow_private_addresses=False, resolve=resolve, limits={"pause": 0})
        assert found.code == "not-allowed"
        assert inner.asked == []
    assert len(site.asked) == 1


def test_redirects_are_followed_but_not_for_ever(site: Site) -> None:
    site.pages["/a"] = Answer(status=301, headers={"Location": "/b"})
    site.pages["/b"] = Answer(b"there")
    assert got(site.url("/a")).url == site.url("/b")
    site.pages["/c"] = Answer(status=302, headers={"Location": "/c"})
    assert "more than 5 times" in fault(site.url("/c")).message
    assert len(site.asked) == 2 + 6


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("file:///etc/passwd", "not-allowed"),
        ("http://[::1", "source-down"),
        ("http://user:word@127.0.0.2/", "not-allowed"),
        (None, "source-down"),
    ],
)
def test_redirects_that_lead_nowhere_good(site: Site, location: str | None, code: str) -> None:
    headers = {} if location is None else {"Location": location}
    site.pages["/a"] = Answer(status=302, headers=headers)
    assert fault(site.url("/a")).code == code


def test_headers_of_the_user_go_only_to_the_host_that_was_named(site: Site) -> None:
    with web_site("127.0.0.2") as other:
        other.pages["/"] = Answer(b"there")
        site.pages["/own"] = Answer(status=302, headers={"Location": "/away"})
        site.pages["/away"] = Answer(status=302, headers={"Location": other.url()})
        with fetcher() as fetch:
            assert fetch.get(site.url("/own"), headers={"X-Key": "geheim"}) is not None
        assert [headers.get("x-key") for _, headers in site.asked] == ["geheim", "geheim"]
        assert "x-key" not in other.asked[0][1]


@pytest.mark.parametrize(
    "headers", [{"X-Key": "geheim\r\nHost: x"}, {"geheim ": "x"}, {"Host": "x"}]
)
def test_headers_that_cannot_be_sent_are_not_repeated(site: Site, headers: dict[str, str]) -> None:
    found = fault(site.url("/a"), {"headers": headers})
    assert found.code == "bad-option"
    assert "geheim" not in found.report()


@pytest.mark.parametrize("status", [204, 206, 400, 401, 404, 500, 599])
def test_an_answer_that_is_no_page_is_a_fault(site: Site, status: int) -> None:
    site.pages["/key-geheim"] = Answer(b"" if status == 204 else b"oops", status=status)
    found = fault(site.url("/key-geheim?token=geheim"))
    assert (found.code, found.status) == ("source-down", status)
    assert "geheim" not in found.report()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        ("999999999999999999999999999", 86_400.0),
        ("soon", None),
        ("-5", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_a_busy_server_says_when_to_come_again(
    site: Site, text: str, seconds: float | None
) -> None:
    site.pages["/a"] = Answer(status=503, headers={"Retry-After": text})
    assert fault(site.url("/a")).retry_after == seconds


def test_a_host_that_wants_a_pause_is_not_asked_until_it_is_over(site: Site) -> None:
    clock = Clock()
    hosts = HostQueue(clock, clock.sleep)
    site.pages["/a"] = Answer(status=429, headers={"Retry-After": "300"})
    site.pages["/b"] = Answer(b"b")
    assert fault(site.url("/a"), hosts=hosts).retry_after == 300
    assert fault(site.url("/b"), hosts=hosts).retry_after == 300
    assert site.paths() == ["/a"]
    clock.time = 299.0
    assert got(site.url("/b"), hosts=hosts).body == b"b"
    assert sum(clock.slept) == pytest.approx(1.0)


def test_requests_to_one_host_have_a_pause_between_them(site: Site) -> None:
    clock = Clock()
    hosts = HostQueue(clock, clock.sleep)
    site.pages["/a"] = Answer(b"a")
    for _ in range(3):
        got(site.url("/a"), hosts=hosts, limits={"pause": 2.0})
    assert clock.time == pytest.approx(4.0)


def test_one_request_a_host_at_a_time(site: Site) -> None:
    site.pages["/a"] = Answer(b"a")
    hosts = HostQueue()
    threads = [threading.Thread(target=lambda: got(site.url("/a"), hosts=hosts)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(site.asked), site.most_under_way) == (8, 1)


def drip(site: Site) -> Any:
    def rest(write: Write) -> None:
        while not site.stopped.wait(0.02):
            write(b"x")

    return rest


def test_a_page_that_never_ends_is_given_up_in_time(site: Site) -> None:
    site.pages["/slow"] = Answer(rest=drip(site))
    site.pages["/silent"] = Answer(rest=lambda _: site.stopped.wait() and None)
    for path in ("/slow", "/silent"):
        found = fault(site.url(path), limits={"seconds": 0.4})
        assert found.code == "source-down"
        assert "within 0.4 s" in found.message


def test_the_head_of_an_answer_may_not_drip_for_ever_either() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        stopped = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                try:
                    while not stopped.wait(0.02):
                        connection.sendall(b"X-A: b\r\n")
                except OSError:
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        port = server.getsockname()[1]
        found = fault(f"http://127.0.0.1:{port}/", limits={"seconds": 0.4})
        stopped.set()
        thread.join()
    assert found.code == "source-down"


def test_a_slow_look_up_of_a_name_ends_in_time() -> None:
    never = threading.Event()

    def resolve(*_: Any, **__: Any) -> list[Any]:
        never.wait()
        return []

    assert (
        "within" in fault("http://slow.example/", resolve=resolve, limits={"seconds": 0.1}).message
    )
    never.set()


def test_an_unknown_name_and_a_closed_port() -> None:
    def resolve(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    assert "not known" in fault("http://nowhere.example/", resolve=resolve).message
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "cannot be reached" in fault(f"http://127.0.0.1:{port}/").message


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"half", headers={"Content-Length": "100"}),
        Answer(b"5\r\nhello\r\n3\r\nab", headers={"Transfer-Encoding": "chunked"}),
        Answer(gzip.compress(b"whole" * 99)[:-9], headers={"Content-Encoding": "gzip"}),
        Answer(b"\x1f\x8bnonsense", headers={"Content-Encoding": "gzip"}),
        Answer(b"nonsense", headers={"Content-Encoding": "deflate"}),
        Answer(b"packed", headers={"Content-Encoding": "br"}),
        Answer(b"packed", headers={"Content-Encoding": "gzip, gzip"}),
        Answer(b"x", headers={"Content-Length": "minus one"}),
    ],
)
def test_half_a_page_is_a_fault(site: Site, answer: Answer) -> None:
    answer.told = False
    site.pages["/a"] = answer
    assert fault(site.url("/a")).code == "source-down"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "raw deflate", "two members"])
def test_packed_pages_are_unpacked(site: Site, encoding: str) -> None:
    body = random.Random(7).randbytes(200_000) + b"end" * 90_000
    raw = zlib.compressobj(wbits=-15)
    packed = {
        "gzip": gzip.compress(body),
        "deflate": zlib.compress(body),
        "raw deflate": raw.compress(body) + raw.flush(),
        "two members": gzip.compress(body[:100_001]) + gzip.compress(body[100_001:]),
    }[encoding]
    name = "deflate" if "deflate" in encoding else "gzip"
    site.pages["/a"] = Answer(packed, headers={"Content-Encoding": name})
    assert got(site.url("/a")).body == body


def endless(site: Site) -> Any:
    def rest(write: Write) -> None:
        while not site.stopped.is_set():
            write(b"x" * 100_000)

    return rest


def test_large_answers_are_refused_before_they_fill_the_memory(site: Site) -> None:
    site.pages["/told"] = Answer(b"", headers={"Content-Length": "9" * 15})
    site.pages["/endless"] = Answer(rest=endless(site))
    bomb = gzip.compress(bytes(30_000_000))
    site.pages["/bomb"] = Answer(bomb, headers={"Content-Encoding": "gzip"})
    for path in ("/told", "/endless", "/bomb"):
        found = fault(site.url(path), limits={"size": 1_000_000})
        assert "larger than 1,000,000 bytes" in found.message


def test_the_size_counts_for_all_pages_of_a_snapshot(site: Site) -> None:
    site.pages["/a"] = Answer(b"x" * 400)
    with fetcher(limits={"size": 1_000}) as fetch:
        fetch.get(site.url("/a"))
        fetch.get(site.url("/a"))
        with pytest.raises(FetchFault, match="larger than"):
            fetch.get(site.url("/a"))


def test_a_page_of_exactly_the_limit_is_read(site: Site) -> None:
    site.pages["/a"] = Answer(gzip.compress(bytes(1_000)), headers={"Content-Encoding": "gzip"})
    assert len(got(site.url("/a"), limits={"size": 1_000}).body) == 1_000


def test_an_answer_of_another_type_is_a_fault(site: Site) -> None:
    site.pages["/a"] = Answer(b"%PDF", type="application/pdf")
    found = fault(site.url("/a"), {"types": ("text/html",)})
    assert "application/pdf" in found.message


def test_a_server_that_speaks_no_http_is_a_fault() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"220 mail.example ESMTP\r\n")
                connection.recv(1_000)

        thread = threading.Thread(target=serve)
        thread.start()
        found = fault(f"http://127.0.0.1:{server.getsockname()[1]}/")
        thread.join()
    assert "not what HTTP allows" in found.message


def test_a_certificate_of_nobody_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path))
    with web_site(context=context) as site:
        found = fault(site.url("/").replace("http:", "https:"))
    assert "certificate" in found.message


def self_signed(directory: Path) -> Path:
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = x509.CertificateBuilder(
        name, name, key.public_key(), 1, now, now + datetime.timedelta(1)
    ).sign(key, hashes.SHA256())
    path = directory / "own.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


def test_proxies_and_passwords_of_the_environment_are_not_used(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password geheim\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    site.pages["/a"] = Answer(b"a")
    assert got(site.url("/a")).body == b"a"
    assert "authorization" not in site.asked[0][1]

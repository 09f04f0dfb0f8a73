"""NOTIFY EMAIL: mails with text and HTML, over TLS, to one address and no other."""

from __future__ import annotations

import datetime
import email
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harken.database.messages import StoredMessage
from harken.errors import HarkenError, ValueFault
from harken.notify.channel_registry import NotDelivered
from harken.notify.channels import register_all
from harken.notify.channels.emails import Emails, mail_address
from tests.notify.channels.sample_messages import around, message


@dataclass
class Mailbox:
    """What a mail server has got, and what it answers."""

    port: int = 0
    got: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    answer: str = "250 OK"
    to_recipient: str = "250 OK"

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, to: str, o: Any) -> str:
        if self.to_recipient.startswith("250"):
            envelope.rcpt_tos.append(to)
        return self.to_recipient

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        mail = email.message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.got.append((envelope.rcpt_tos, mail))
        return self.answer


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "mail.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


Start = Callable[..., Mailbox]


@pytest.fixture
def start(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    running = []

    def begin(**options: Any) -> Mailbox:
        with socket.create_server(("127.0.0.1", 0)) as free:
            mailbox = Mailbox(port=free.getsockname()[1])
        controller = Controller(mailbox, "127.0.0.1", mailbox.port, **options)
        controller.start()
        running.append(controller)
        return mailbox

    yield begin
    for each in running:
        each.stop()


def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


register_all()


def send(mailbox: Mailbox, sent: StoredMessage, **settings: Any) -> None:
    plain = {
        "smtp_host": "127.0.0.1",
        "smtp_port": mailbox.port,
        "smtp_security": "none",
        "smtp_from": "harken@example.org",
    }
    about = around(**{**plain, **settings})
    prepared = replace(about, resolve_secret=lambda text: "pa55word").prepared(sent)
    Emails().send(sent, replace(prepared, unsubscribe="https://harken.example.org/u/1"))


def test_a_mail_has_text_and_a_table(start: Start) -> None:
    mailbox = start()
    send(mailbox, message("email", "ann@example.org"))
    ((to, mail),) = mailbox.got
    assert to == ["ann@example.org"]
    assert mail["Subject"] == "low: 1 new"
    assert mail["Message-ID"] == "<msg_1@example.org>"
    assert mail["List-Unsubscribe"] == "<https://harken.example.org/u/1>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert text is not None
    assert "item: pen, left: 2" in text.get_content()
    assert html is not None
    assert "<td>pen</td><td>2</td>" in html.get_content()


def test_no_value_becomes_a_header(start: Start) -> None:
    mailbox = start()
    sent = message("email", "ann@example.org")
    bad = {"subject": "hello\r\nBcc: all@example.org", "text": "<script>alert(1)</script>"}
    about = replace(sent.message, kind="announcement", payload=bad)
    send(mailbox, replace(sent, message=about))
    ((to, mail),) = mailbox.got
    assert (to, mail["Bcc"]) == (["ann@example.org"], None)
    assert mail["Subject"] == "hello Bcc: all@example.org" or mail["Subject"] == "hello"
    html = mail.get_body(("html",))
    assert html is not None
    assert "<script>" not in html.get_content()


@pytest.mark.parametrize(
    "address",
    [
        *("", "ann", "ann@", "@example.org", "a@b@c", "Ann <ann@example.org>", "a@b, c@d"),
        *("ann@example.org\nBcc: all@example.org", "ann@example.org\0", "x" * 300 + "@b.org"),
    ],
)
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueFault, match="no mail address"):
        mail_address(address)


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")  # it is inside of it
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_the_password_goes_over_tls(start: Start, certificate: Path, security: str) -> None:
    seen = []

    def log_in(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        seen.append((data.login, data.password))
        return AuthResult(success=True)

    how = "tls_context" if security == "starttls" else "ssl_context"
    given: dict[str, Any] = {how: tls(certificate), "authenticator": log_in}
    if security == "starttls":
        given |= {"require_starttls": True, "auth_required": True}
    else:
        given |= {"auth_require_tls": False, "auth_required": True}
    mailbox = start(**given)
    sent = message("email", "ann@example.org")
    send(mailbox, sent, smtp_security=security, smtp_user="harken", smtp_password="secret:mail")
    assert seen == [(b"harken", b"pa55word")]
    assert len(mailbox.got) == 1


def test_a_certificate_that_nobody_knows_is_refused(
    start: Start, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mailbox = start(tls_context=tls(certificate))
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(NotDelivered, match="CERTIFICATE_VERIFY_FAILED"):
        send(mailbox, message("email", "ann@example.org"), smtp_security="starttls")


def test_no_password_goes_without_tls(start: Start) -> None:
    mailbox = start()
    with pytest.raises(NotDelivered, match="without TLS"):
        send(mailbox, message("email", "ann@example.org"), smtp_user="harken")
    with pytest.raises(ValueFault, match="must name a secret") as caught:
        send(mailbox, message("email", "ann@example.org"), smtp_password="pa55word")
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize(("answer", "retry"), [("451 later", True), ("554 no such mailbox", False)])
@pytest.mark.parametrize("step", ["answer", "to_recipient"])
def test_a_refusal_is_for_now_or_for_good(
    start: Start, answer: str, retry: bool, step: str
) -> None:
    mailbox = start()
    setattr(mailbox, step, answer)
    with pytest.raises(NotDelivered, match=answer[:3]) as caught:
        send(mailbox, message("email", "ann@example.org"))
    assert caught.value.retry is retry


def test_without_a_server_no_mail_is_promised() -> None:
    with pytest.raises(HarkenError, match="no mail server"):
        Emails().check(message("email", "ann@example.org").message.recipient, around())
    with pytest.raises(NotDelivered, match="cannot be reached"):
        send(Mailbox(port=1), message("email", "ann@example.org"))

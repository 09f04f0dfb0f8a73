"""`NOTIFY EMAIL 'me@example.org'`: a mail by the server that the settings `smtp_...` name.

It has a text and HTML, and can be unsubscribed from with one click (RFC 8058) if the setting
`public_address` says where people reach this service. Law: no value of a message becomes a header
or a recipient of its own.
"""

from __future__ import annotations

import smtplib
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as RULES
from email.utils import format_datetime

from harken.database.messages import Recipient, StoredMessage
from harken.database.secrets import is_reference
from harken.errors import HarkenError, ValueFault
from harken.notify.channel_registry import NotDelivered, Surroundings
from harken.notify.texts import one_line
from harken.notify.tls import trusted

SECONDS = 30.0
"""How long the server may take for each answer."""
LONGEST_ADDRESS = 254
"""Of a mail address, in RFC 5321."""
SECURITY = ("starttls", "tls", "none")


class Emails:
    name = "email"

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        mail_address(recipient.address)
        if not around.setting("smtp_host"):
            raise HarkenError(
                "no mail can be sent: there is no mail server",
                code="not-allowed",
                hint="the operator names one: --set smtp_host=mail.example.org "
                "--set smtp_from=harken@example.org",
            )
        if around.setting("smtp_security") not in SECURITY:
            raise ValueFault(
                f"the setting smtp_security cannot be {around.setting('smtp_security')!r}",
                code="bad-value",
                hint=f"it is one of {', '.join(SECURITY)}",
            )
        mail_address(around.setting("smtp_from"))
        password = around.setting("smtp_password")
        if password and not is_reference(password):
            raise ValueFault(
                "the setting smtp_password must name a secret",
                code="bad-value",
                hint="as smtp_password=secret:mail: everybody can read the settings",
            )

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        self.check(message.message.recipient, around)
        mail = mail_of(message, around)
        try:
            self._hand_over(mail, around)
        except smtplib.SMTPRecipientsRefused as error:
            code, said = next(iter(error.recipients.values()))
            raise NotDelivered(
                f"the mail server refused the recipient: {code} {_said(said)}",
                retry=not 500 <= code < 600,
            ) from error
        except smtplib.SMTPResponseException as error:
            raise NotDelivered(
                f"the mail server answered {error.smtp_code} {_said(error.smtp_error)}",
                retry=not (
                    isinstance(error, smtplib.SMTPDataError) and 500 <= error.smtp_code < 600
                ),
            ) from error
        except (smtplib.SMTPException, OSError) as error:
            raise NotDelivered(
                f"the mail server cannot be reached: {one_line(str(error))}"
            ) from error

    def _hand_over(self, mail: EmailMessage, around: Surroundings) -> None:
        host, port = around.setting("smtp_host"), around.setting("smtp_port")
        security, user = around.setting("smtp_security"), around.setting("smtp_user")
        if security == "none" and user:
            raise NotDelivered("the password is not sent over a connection without TLS", retry=True)
        server = (
            smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=trusted())
            if security == "tls"
            else smtplib.SMTP(host, port, timeout=SECONDS)
        )
        with server:
            if security == "starttls":
                server.starttls(context=trusted())
            if user:
                server.login(user, around.secret(around.setting("smtp_password")))
            server.send_message(mail)


def mail_of(message: StoredMessage, around: Surroundings) -> EmailMessage:
    """A message as a mail."""
    texts = around.texts(message)
    sender = mail_address(around.setting("smtp_from"))
    mail = EmailMessage(RULES)
    try:
        mail["From"] = sender
        mail["To"] = mail_address(message.message.recipient.address)
        mail["Subject"] = one_line(texts.subject)
        mail["Date"] = format_datetime(message.message.at)
        mail["Message-ID"] = f"<{message.id}@{sender.domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        if around.unsubscribe:
            mail["List-Unsubscribe"] = f"<{around.unsubscribe}>"
            mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        mail.set_content(texts.text)
        mail.add_alternative(texts.html, subtype="html")
    except (MessageError, ValueError) as error:
        raise NotDelivered(f"no mail can be made of this: {error}", retry=False) from error
    return mail


def mail_address(text: str) -> Address:
    """The one address that a text is."""
    try:
        if len(text) > LONGEST_ADDRESS or not text.isprintable() or not text.isascii():
            raise ValueError(text)
        found = Address(addr_spec=text)
        if not found.username or "." not in f"{found.domain}." or not found.domain:
            raise ValueError(text)
    except (MessageError, ValueError, IndexError) as error:
        raise ValueFault(
            f"{one_line(text, 60)!r} is no mail address",
            code="bad-value",
            hint="as me@example.org: one address without a name",
        ) from error
    return found


def _said(answer: bytes | str) -> str:
    text = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return one_line(text)

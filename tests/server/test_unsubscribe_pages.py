"""One click in a mail ends the messages of one query to one address, and no others."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import pytest

import harken
from harken.database.messages import Message, Messages, Recipient, StoredMessage
from harken.notify.channel_registry import Surroundings, register, withdraw
from harken.notify.channels.emails import mail_of
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

SETTINGS = {"public_address": "https://harken.example.org/", "smtp_from": "h@example.org"}


class Toy:
    """A channel that keeps the mails that it would send."""

    name = "toy"

    def __init__(self) -> None:
        self.mails: list[tuple[str, str, str]] = []

    def check(self, recipient: Recipient, around: Surroundings) -> None:
        pass

    def send(self, message: StoredMessage, around: Surroundings) -> None:
        mail = mail_of(message, around)
        header = mail["List-Unsubscribe"] or ""
        self.mails.append((message.message.query, header, mail["List-Unsubscribe-Post"] or ""))


@pytest.fixture
def toy() -> Iterator[Toy]:
    made = Toy()
    register(made)
    yield made
    withdraw("toy")


def tell(db: harken.Database, query: str, kind: str = "results") -> None:
    to = Recipient("toy", "ann@example.org")
    with db.transaction():
        now = db.internals.connection.now()
        Messages(db.internals.runtime).write(Message(query, 1, kind, now, "ann", to, {}))
    db.notifications.run()


def asked(served: Served, method: str, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    try:
        body = "List-Unsubscribe=One-Click" if method == "POST" else None
        form = {"content-type": "application/x-www-form-urlencoded"} if body else {}
        connection.request(method, path, body, form)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_one_click_ends_the_messages_of_one_query(served: Served, path: str, toy: Toy) -> None:
    with harken.connect(path, settings=SETTINGS) as db:
        tell(db, "bayer")
        tell(db, "ibm")
        (_, header, post), (_, other, _) = toy.mails
        assert post == "List-Unsubscribe=One-Click"
        assert header.startswith("<https://harken.example.org/unsubscribe/")
        assert header != other
        link = header.strip("<>").removeprefix("https://harken.example.org")
        status, page = asked(served, "GET", link)
        assert (status, "Messages of bayer" in page, '<form method="post">' in page) == (
            200,
            True,
            True,
        )
        tell(db, "bayer")
        assert len(toy.mails) == 3  # a scanner that opens the link ends nothing
        assert toy.mails[2][1] == header  # the link stays the same
        status, page = asked(served, "POST", link)
        assert (status, "gets no more messages of bayer" in page) == (200, True)
        tell(db, "bayer")
        tell(db, "ibm")
        assert [query for query, *_ in toy.mails[3:]] == ["ibm"]
        assert db.notifications.list("unsubscribed")[0].query == "bayer"
        tell(db, "bayer", "operator_error")
        assert toy.mails[-1][0] == "bayer"
        (gone,) = db.notifications.unsubscribed()
        assert (gone.query, gone.address) == ("bayer", "ann@example.org")
        assert db.notifications.resubscribe("bayer", "toy", "ann@example.org")
        assert not db.notifications.resubscribe("bayer", "toy", "ann@example.org")
        tell(db, "bayer")
        assert toy.mails[-1][0] == "bayer"


def test_unknown_links_say_so(served: Served) -> None:
    for method in ("GET", "POST"):
        status, page = asked(served, method, "/unsubscribe/nothing")
        assert status == 404
        assert "not known" in page


def test_without_a_public_address_there_is_no_link(path: str, toy: Toy) -> None:
    with harken.connect(path, settings={"smtp_from": "h@example.org"}) as db:
        tell(db, "bayer")
        assert toy.mails == [("bayer", "", "")]

"""From a service with an empty database to a continual query over a table of PostgreSQL and a test
mail, with nothing but what the pages say."""

from __future__ import annotations

import email
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from playwright.sync_api import Page, expect

import harken
from harken.bench.postgres import free_port
from tests.harness.servers import PostgresDatabase
from tests.harness.servers import logical_database as logical_database
from tests.harness.servers import logical_server as logical_server
from tests.server.serving import Served


class Mailbox:
    def __init__(self) -> None:
        self.got: list[EmailMessage] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        mail = email.message_from_bytes(envelope.content, policy=default)
        assert isinstance(mail, EmailMessage)
        self.got.append(mail)
        return "250 OK"


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    handler, port = Mailbox(), free_port()
    controller = Controller(handler, hostname="127.0.0.1", port=port)
    controller.start()
    yield handler, port
    controller.stop()


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "mine.db"
    harken.connect(path).close()
    return str(path)


def test_from_nothing_to_a_test_mail(
    page: Page,
    serve: Callable[..., Served],
    logical_database: PostgresDatabase,
    mailbox: tuple[Mailbox, int],
) -> None:
    box, port = mailbox
    logical_database.run("CREATE TABLE stock (item text PRIMARY KEY, quantity int)")
    logical_database.run("INSERT INTO stock VALUES ('pen', 5), ('ink', 50)")
    served = serve()
    page.goto(served.url)

    page.get_by_role("link", name="Bring data in").click()
    page.get_by_label("url").fill(logical_database.url)
    page.get_by_label("table (needed)").fill("public.stock")
    page.get_by_role("button", name="Check it").click()
    page.get_by_role("button", name="Allow it, and check again").click()
    expect(page.locator("[data-result]")).to_contain_text("pen")
    expect(page.locator("#name")).to_have_value("stock")
    page.get_by_role("button", name="Add the source").click()
    expect(page.locator("h1")).to_have_text("stock")
    expect(page.locator("[data-live-count]")).to_have_text("2 rows")

    page.get_by_role("link", name="Home").click()
    page.get_by_role("link", name="Set the mail server").click()
    page.get_by_label("Server", exact=True).fill("127.0.0.1")
    page.get_by_label("Port").fill(str(port))
    page.get_by_label("Encryption").select_option("none")
    page.get_by_label("Sender").fill("harken@example.org")
    page.get_by_role("button", name="Keep").click()
    expect(page.locator("[data-told]").first).to_contain_text("Kept")
    page.get_by_label("To", exact=True).fill("ann@example.org")
    page.get_by_role("button", name="Send test").click()
    expect(page.locator("[data-told]").last).to_contain_text("Sent to ann@example.org")
    assert "Harken can send mails" in box.got.pop().as_string()

    page.get_by_role("link", name="Home").click()
    page.get_by_role("link", name="Say what you want to know").click()
    page.get_by_label("Add a table or view").select_option("stock")
    page.get_by_label("Where", exact=True).fill("quantity < 10")
    page.get_by_label("when data changes").check()
    page.get_by_label("Address").fill("ann@example.org")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_label("The same as text")).to_have_value(
        "CREATE CONTINUAL QUERY AS\nSELECT * FROM stock\nWHERE quantity < 10\n"
        "TRIGGER WHEN stock.quantity CHANGES\nNOTIFY EMAIL 'ann@example.org'"
    )
    page.get_by_role("button", name="Send test").click()
    expect(page.locator("[data-result]")).to_contain_text("✓ email ann@example.org: sent")
    assert "pen" in box.got.pop().as_string()
    page.get_by_label("Name", exact=True).fill("low_stock")
    page.get_by_role("button", name="Install").click()
    expect(page.locator("h1")).to_have_text("low_stock")
    expect(page.locator("[data-live-count]")).to_contain_text("1 row")
    expect(page.locator("main")).to_contain_text("Watching since")

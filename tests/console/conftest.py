"""Pages as a person sees them: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

import harken
from tests.harness.patience import PATIENCE
from tests.server.browser import CHROMIUM
from tests.server.conftest import _ending as _ending
from tests.server.conftest import serve as serve
from tests.server.serving import Served

QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
SCHEMA = """
CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT, supplier STRING);
CREATE TABLE note (text STRING);
CREATE VIEW low AS SELECT item, quantity FROM stock WHERE quantity < 10;
CREATE MATERIALIZED VIEW by_supplier AS
  SELECT supplier, sum(quantity) AS total FROM stock GROUP BY supplier;
INSERT INTO stock VALUES ('pen', 5, 'Acme'), ('ink', 50, NULL),
  ('<img src=x onerror=alert(1)>', 7, 'Zen');
"""
RULE = """
create type item;
create function quantity_of(item) -> integer as stored;
create rule order_more() as when for each item i where quantity_of(i) < 3 do print(i);
activate order_more();
commit;
"""


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("console") / "shop.db"
    with harken.connect(path) as db:
        db.sql(SCHEMA)
        db.amosql(RULE)
    return path


@pytest.fixture
def path(tmp_path: Path, shop: Path) -> str:
    copy = tmp_path / "shop.db"
    copy.write_bytes(shop.read_bytes())
    return str(copy)


@pytest.fixture
def served(serve: Callable[..., Served]) -> Served:
    return serve()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Not for the whole run: while Playwright runs its loop, no other test can use asyncio."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: script/chromium --install")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        expect.set_options(timeout=PATIENCE * 1000)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page on which nothing may be reported: no error of a script, nothing that the policy
    blocked."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE * 1000)
    made = context.new_page()
    reported: list[str] = []
    made.on("pageerror", lambda error: reported.append(str(error)))
    made.on("console", lambda line: line.type == "error" and reported.append(line.text))
    yield made
    context.close()
    refused = ("ERR_", "the server responded with a status of 4")  # a service away, an error shown
    assert not [line for line in reported if not any(each in line for each in refused)]

"""The console in a real browser: live rows, the palette, the query page, a phone, and barriers."""

from __future__ import annotations

from collections.abc import Callable

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

import harken
from tests.server.serving import Served


def test_rows_change_while_one_looks(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/data/stock")
    expect(page.locator("[data-live-count]")).to_have_text("3 rows")
    served.client.sql("UPDATE stock SET quantity = 6 WHERE item = 'pen'")
    changed = page.locator("tr.chg")
    expect(changed.locator(".mark")).to_have_text("~")
    expect(changed.locator(".was")).to_have_attribute("title", "was 5")
    served.client.sql("INSERT INTO stock VALUES ('cap', 1, 'Acme')")
    expect(page.locator("tr.add")).to_contain_text("cap")
    served.client.sql("DELETE FROM stock WHERE item = 'ink'")
    expect(page.locator("tr.del .mark")).to_have_text("−")
    expect(page.locator("[data-live-count]")).to_contain_text("3 rows")
    expect(page.locator("tr.del")).to_have_count(0)


def test_many_rows_scroll_and_sort(page: Page, served: Served) -> None:
    rows = [[f"item {number}", number, None] for number in range(10_000)]
    served.client.apply(insert={"stock": rows})
    page.goto(f"{served.url}/data/stock")
    expect(page.locator("[data-live-count]")).to_have_text("10,003 rows")
    page.get_by_role("button", name="quantity").click()
    expect(page.locator("tbody tr:not(.space)").first).to_contain_text("item 0")
    page.get_by_role("button", name="quantity").click()
    expect(page.locator("tbody tr:not(.space)").first).to_contain_text("item 9999")
    assert page.locator("tbody tr").count() < 200
    page.locator("[data-live]").evaluate("place => place.scrollTop = place.scrollHeight")
    expect(page.locator("tbody tr:not(.space)").last).to_contain_text("item 0")


def test_a_page_goes_on_after_the_service_was_away(
    page: Page, serve: Callable[..., Served], path: str
) -> None:
    served = serve()
    page.goto(f"{served.url}/data/stock")
    expect(page.locator("[data-live-count]")).to_have_text("3 rows")
    served.stop()
    expect(page.locator("[data-service]")).to_contain_text("reconnecting since")
    with harken.connect(path) as db:
        db.sql("INSERT INTO stock VALUES ('cap', 1, 'Acme')")
    serve(port=served.port)
    expect(page.locator("tr.add")).to_contain_text("cap")
    expect(page.locator("[data-service]")).to_have_text("live")


def test_everything_is_reached_by_keyboard(page: Page, served: Served) -> None:
    page.goto(served.url)
    page.keyboard.press("/")
    page.keyboard.type("low")
    expect(page.locator("[role=option]").first).to_contain_text("low")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("low")
    page.keyboard.press("Control+k")
    page.keyboard.type("query")
    expect(page.locator("[role=option]").first).to_contain_text("Query")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Query")
    page.get_by_label("Statement").focus()
    page.keyboard.type("SELECT item FROM st")
    page.keyboard.press("Control+Space")
    expect(page.get_by_label("Statement")).to_have_value("SELECT item FROM stock")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-results] h2")).to_contain_text("3 rows")
    page.go_back()
    expect(page.locator("h1")).to_have_text("low")


def test_what_was_typed_is_kept(page: Page, served: Served) -> None:
    page.goto(f"{served.url}/query")
    page.get_by_label("Statement").fill("SELECT 1 AS unfinished")
    page.goto(f"{served.url}/data")
    page.goto(f"{served.url}/query")
    expect(page.get_by_label("Statement")).to_have_value("SELECT 1 AS unfinished")


PLAIN = (
    *("/", "/data", "/data/stock", "/query", "/queries", "/queries/low_stock", "/new/query"),
    *("/operator?tab=mail", "/operator?tab=grants", "/data/stock?tab=changes"),
    *("/queries/low_stock?tab=executions", "/rules", "/operator", "/sources", "/new/source"),
)
QUERY = "CREATE CONTINUAL QUERY low_stock AS SELECT * FROM low TRIGGER EVERY DAY NOTIFY LOG"


def test_a_phone_has_the_menu_below_and_no_sideways_scrolling(page: Page, served: Served) -> None:
    served.client.sql(QUERY)
    page.set_viewport_size({"width": 390, "height": 800})
    for path in PLAIN:
        page.goto(served.url + path)
        menu = page.locator(".menu").bounding_box()
        assert menu is not None
        assert menu["y"] > 700, path
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, path


def test_no_page_has_barriers(page: Page, served: Served) -> None:
    served.client.sql(QUERY)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        for path in (*PLAIN, "/data/low?tab=lineage"):
            page.goto(served.url + path)
            found = Axe().run(page)
            assert found.violations_count == 0, f"{path}: {found.generate_report()}"

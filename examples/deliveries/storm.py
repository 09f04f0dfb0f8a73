"""Which deliveries does a storm hold up? A table of PostgreSQL joined with a page of HTML.

    python storm.py deliveries.db postgresql://localhost/shop https://example.org/weather.html

Each run takes in what has changed on both sides, also while nobody ran it, and says what that does
to the answer. A server or a page on this machine needs HARKEN_ALLOW_PRIVATE_ADDRESSES=1.
"""

import sys

import harken

VIEW = """
CREATE VIEW held_up AS
    SELECT d.id, d.customer, w.harbour, w.wind
    FROM delivery AS d JOIN weather AS w ON w.harbour = d.harbour
    WHERE w.wind >= 10;
"""


def install(db: harken.Database, shop: str, page: str) -> None:
    place = {"url": page} if page.startswith("http") else {"path": page}
    db.source("delivery", "postgresql", url=shop, table="delivery")
    db.source(
        "weather",
        "html",
        **place,
        rows="table.obs tr:has(td)",
        columns=["td:nth-child(1)", "td:nth-child(2)"],
        names=["harbour", "wind"],
        types=["wind number"],
        key="harbour",
        every=20 * 60,
    )
    db.sql(VIEW)


def main(path: str, shop: str, page: str) -> None:
    with harken.connect(path) as db:
        if not db.sources.list():
            install(db, shop, page)
        told = db.monitor("held_up", durable="storm")
        db.step()
        for change in told.changes():
            for _, customer, harbour, wind in change.plus:
                print(f"+ {customer} waits: {wind} m/s at {harbour}")
            for _, customer, harbour, wind in change.minus:
                print(f"- {customer} waited: {wind} m/s at {harbour}")
        told.acknowledge()
        print("held up:", sorted(row[1] for row in db.sql("SELECT * FROM held_up").rows))


if __name__ == "__main__":
    main(*sys.argv[1:])

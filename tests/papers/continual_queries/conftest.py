"""The desk of somebody who reads the thesis: a session whose clock is in 1998, a database that is
far away, and the weather service on the web."""

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.sources.safe_fetch import SafeFetch
from tests.harness.servers import PostgresDatabase
from tests.harness.web_site import Answer, Site, web_site

NOON = datetime.datetime(1998, 5, 4, 12, tzinfo=datetime.UTC)
"""A Monday."""


class QueryDesk:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = NOON
        self.db = harken.connect(
            ":memory:",
            clock=lambda: self.now,
            settings={"allow_private_addresses": True},
        )

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.db.sql(text).rows

    def run(self, **later: float) -> list[Any]:
        """What is executed, in the end, when this much time has passed."""
        self.now += datetime.timedelta(**later)
        found = self.db.run_due()
        return found + self.db.run_due()  # what the sources have told

    def fired(self, statement: str) -> list[Any]:
        """What a change of data executes."""
        self.sql(statement)
        return self.run()

    def events(self, name: str) -> list[str]:
        """The triplets of 4.2.3.2."""
        lines = [row[0].strip() for row in self.sql(f"EXPLAIN CONTINUAL QUERY {name}")]
        return [each for each in lines if each.startswith("(")]

    def mirror(self, name: str, database: PostgresDatabase) -> None:
        """A table of the database, as a source that is looked at every minute."""
        self.db.source(name, "postgresql", url=database.url, table=name, capture="poll", every=60)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[QueryDesk]:
    made = QueryDesk(tmp_path)
    yield made
    made.db.close()


Weather = Callable[..., None]


@pytest.fixture
def weather(desk: QueryDesk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Weather]:
    """The page of www.nws.nova.gov: called with rows, it shows them."""

    def looked_up(host: str, port: int, **_: Any) -> list[Any]:
        assert host == "www.nws.nova.gov"
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    defaults = SafeFetch.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "resolve", looked_up)
    with web_site() as site:
        _show(site)
        url = site.url("/observations", host="www.nws.nova.gov")
        key = ["location", "state"]
        desk.db.source("nws", "html", url=url, table=1, key=key, every=300, suspect_share=1.0)
        yield lambda *rows: _show(site, *rows)


def _show(site: Site, *rows: tuple[str, ...]) -> None:
    cells = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
    head = "<tr><th>location</th><th>state</th><th>sky</th></tr>"
    fixed = "<tr><td>Portland</td><td>Oregon</td><td>rain</td></tr>"
    site.pages["/observations"] = Answer(
        f"<html><body><table>{head}{fixed}{cells}</table></body></html>".encode()
    )

"""A continual query over two sources, and the messages that it sends.

Prices are in a table of PostgreSQL, where there is one, and else in a table here; which company has
which symbol is on a page of HTML. The query joins the two.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel

import harken
from harken.demo.stage import Stage, seconds_of
from harken.notify.channel_registry import withdraw

CHANNEL = "screen"
PRICES = (("BAY", 100), ("IBM", 200), ("SAP", 120))
PAGE = """<html><body><table>
<tr><th>symbol</th><th>company</th></tr>
{rows}</table></body></html>"""
COMPANIES = {"BAY": "Bayer AG", "IBM": "IBM"}
NEW = {"SAP": "SAP SE"}
QUERY = """CREATE CONTINUAL QUERY falling AS
  SELECT company, price FROM stock JOIN company USING (symbol)
  TRIGGER WHEN stock.price DECBYP 5 OR company CHANGES
  STOP AFTER 2 WEEKS
  DELIVER CHANGED BY (company)
  NOTIFY SCREEN 'you'"""
FALL = "UPDATE stock SET price = price * 0.94 WHERE symbol = 'BAY'"
SMALL = "UPDATE stock SET price = price * 0.98 WHERE symbol = 'IBM'"


def play(console: Console | None = None) -> None:
    console = console or Console(highlight=False)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="harken-demo-")))
        settings = {"allow_private_addresses": True}  # PostgreSQL is on this machine
        db = stack.enter_context(harken.connect(str(directory / "news.db"), settings=settings))
        TellingStory(console, db, directory, stack).play()


class TellingStory(Stage):
    def __init__(
        self, console: Console, db: harken.Database, directory: Path, stack: ExitStack
    ) -> None:
        super().__init__(console, db)
        self._page = directory / "companies.html"
        self._stack = stack
        self._update: Callable[[str], object] = db.sql
        """Runs a statement where the prices are."""
        self._sources = ["company"]

    def play(self) -> None:
        self._title("A query that tells you")
        self._prices()
        self._companies()
        self._install()
        self._happen()

    def _prices(self) -> None:
        connection = self._postgres()
        if connection is None:
            self._say("Prices are in a table. (Where PostgreSQL is installed, they are in it.)")
            self._db.sql("CREATE TABLE stock (symbol STRING PRIMARY KEY, price DOUBLE)")
            self._db.insert("stock", list(PRICES))
            return
        self._say("Prices are in a table of PostgreSQL, which Harken follows as a source.")
        connection.execute("CREATE TABLE stock (symbol text PRIMARY KEY, price double precision)")
        for row in PRICES:
            connection.execute("INSERT INTO stock VALUES (%s, %s)", row)
        self._update = connection.execute
        self._sources.append("stock")
        url = self._server.url()
        options = f"OPTIONS (url '{url}', table 'stock')"
        self._sql(f"CREATE SOURCE stock USING postgresql {options} KEY (symbol)")

    def _postgres(self) -> Any:
        """A connection to a server of our own, if there can be one."""
        # The benchmarks want pyarrow, which whoever lacks PySpark may lack as well.
        from harken.bench.postgres import QUICK, NoPostgres, postgres_server

        with suppress(NoPostgres, ModuleNotFoundError, OSError, subprocess.SubprocessError):
            import psycopg

            self._server = self._stack.enter_context(postgres_server(*QUICK))
            return self._stack.enter_context(psycopg.connect(self._server.place(), autocommit=True))
        return None

    def _companies(self) -> None:
        self._say("Whose they are is on a page of the web, or here in a file of HTML.")
        self._write(COMPANIES)
        options = f"OPTIONS (path '{self._page}', table '1')"
        self._sql(f"CREATE SOURCE company USING html {options} KEY (symbol)")

    def _write(self, companies: dict[str, str]) -> None:
        rows = "".join(f"<tr><td>{s}</td><td>{c}</td></tr>\n" for s, c in companies.items())
        self._page.write_text(PAGE.format(rows=rows), "utf-8")

    def _install(self) -> None:
        self._say(
            "One statement joins the two, says when to look and until when, and whom to tell. Any "
            "function can be a channel, beside mail, webhooks and files; this one prints here."
        )
        self._code('@harken.channel("screen")\ndef show(message): print(message.text)\n')
        harken.channel(CHANNEL)(self._show_message)
        self._stack.callback(withdraw, CHANNEL)
        self._sql(QUERY)
        self._db.run_due()

    def _happen(self) -> None:
        self._say("IBM falls by 2 %, then Bayer by 6 %. The query has waited for 5 %.")
        self._sql(SMALL, self._update)
        self._look()
        self._sql(FALL, self._update)
        self._look()
        self._say("A company is added to the page. The query joins it with its price.")
        self._write(COMPANIES | NEW)
        self._look()

    def _look(self) -> None:
        """What `harken serve` does by itself."""

        def work() -> None:
            for source in self._sources:
                self._db.sql(f"REFRESH SOURCE {source}")
            self._done = self._db.run_due()

        took = seconds_of(work)
        said = "the query was executed" if self._done else "nothing to tell"
        self._fact(f"sources read, {said}", took)

    def _sql(self, text: str, run: Callable[[str], object] | None = None) -> None:
        self._code(f"{text};")
        (run or self._db.sql)(text)

    def _show_message(self, message: Any) -> None:
        self._show_indented(Panel(message.text.strip(), title=message.subject, expand=False))

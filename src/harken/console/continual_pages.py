"""Continual queries as the console lists and shows them: what state each is in, in plain words."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from harken.api.continual_handles import PastExecution
from harken.api.database import Database
from harken.api.notifications import Notification
from harken.console.bar_charts import bars
from harken.console.continual_texts import text_of
from harken.console.rendering import Problem, moment, plural
from harken.continual.installed_queries import InstalledQuery, State
from harken.database.messages import DEAD, DELIVERED, FAILED
from harken.errors import HarkenError
from harken.ir.relations import Column

TABS = (
    ("live", "Live"),
    ("executions", "Executions"),
    ("deliveries", "Deliveries"),
    ("how", "How it works"),
)
MOST_LISTED = 200
"""Executions and deliveries of a page."""
AGAIN = (DELIVERED, DEAD, FAILED)
"""The states of messages that can be sent again."""


@dataclass(frozen=True, slots=True)
class Listed:
    query: InstalledQuery

    @property
    def state(self) -> str:
        query = self.query
        if query.state is not State.ACTIVE:
            return str(query.state)
        if query.failures:
            return "failing"
        if query.snoozed is not None:
            return "snoozed"
        return "watching, muted" if query.muted else "watching"

    @property
    def mark(self) -> str:
        """The class of the dot before its state."""
        return {"failing": "down", "watching": "live", "watching, muted": "live"}.get(
            self.state, "lost" if self.query.is_live else ""
        )

    @property
    def next_due(self) -> datetime.datetime | None:
        return self.query.wakes_at() if self.query.state is State.ACTIVE else None

    @property
    def trigger(self) -> str:
        return str(self.query.clauses.trigger)


def listed(db: Database, text: str = "", state: str = "") -> list[Listed]:
    """Those that need attention first, then those that are watched, by name."""
    order = {"failing": 0, "stopped": 2}
    found = [Listed(each) for each in db.continual_queries.list()]
    found.sort(key=lambda each: (order.get(each.state, 1), each.query.name.lower()))
    wanted = text.casefold()
    return [
        each
        for each in found
        if wanted in each.query.name.casefold() and state in ("", each.state.partition(",")[0])
    ]


def sentence(query: InstalledQuery) -> Markup:
    """What a query is doing, in plain words."""
    times = plural(query.executions, "time")
    done = Markup(" Executed <b>{}</b>, last <b>{}</b>.").format(times, moment(query.evaluated))
    match query.state:
        case State.PAUSED:
            start = Markup("<b>Paused</b>: nothing is executed until it is resumed.")
        case State.STOPPED:
            reason = query.problem.removeprefix("stopped: ") or "it was ended"
            start = Markup("<b>Stopped</b>: {}.").format(reason)
        case _ if query.snoozed is not None:
            start = Markup("<b>Snoozed</b>: it is executed once, {}.").format(moment(query.snoozed))
        case _:
            start = Markup("Watching since {}.").format(moment(query.installed))
    return start + done + _ahead(query)


def _ahead(query: InstalledQuery) -> Markup:
    if query.state is not State.ACTIVE:
        return Markup("")
    said, due, stops = Markup(""), query.wakes_at(), query.stops_at
    if query.snoozed is None and due is not None and due != stops:
        said += Markup(" Next {}.").format(moment(due))
    if stops is not None:
        said += Markup(" Stops {}.").format(moment(stops))
    if query.muted:
        said += Markup(" <b>Muted</b>: no messages are sent.")
    return said


@dataclass(frozen=True, slots=True)
class Shown:
    """One continual query on its page."""

    listed: Listed
    sentence: Markup
    text: str
    columns: Sequence[Column]
    key: Sequence[str]
    delivery: str
    plan: Sequence[str]
    problem: Problem | None
    last: PastExecution | None
    unsent: Sequence[Notification]

    @property
    def query(self) -> InstalledQuery:
        return self.listed.query

    @property
    def name(self) -> str:
        return self.listed.query.name


def shown(db: Database, name: str) -> Shown:
    handle = db.continual_queries.get(name)
    query, problem = handle.status, None
    columns: Sequence[Column] = ()
    key: Sequence[str] = ()
    plan: Sequence[str] = ()
    delivery = ""
    try:
        about = handle.describe()
        columns, key, delivery, plan = about.columns, about.key, about.delivery, about.plan
    except HarkenError as error:
        problem = Problem.of(error)
    history = handle.history()
    return Shown(
        Listed(query),
        sentence(query),
        text_of(query, str(db.settings["time_zone"])),
        columns,
        key,
        delivery,
        plan,
        problem,
        history[-1] if history else None,
        [each for each in handle.deliveries() if each.error],
    )


def page_values(db: Database, name: str, tab: str, execution: int | None = None) -> dict[str, Any]:
    values: dict[str, Any] = {
        "shown": shown(db, name),
        "tabs": TABS,
        "tab": tab if tab in dict(TABS) else "live",
        "executions": (),
        "deliveries": (),
        "again": AGAIN,
        "picture": "",
        "networks": (),
        "chosen": None,
    }
    match values["tab"]:
        case "live" | "executions":
            kept = db.continual_queries.get(name).history()[-MOST_LISTED:]
            values["executions"] = kept[::-1]
            sizes = [each.inserted + each.deleted for each in kept[1:]]
            labels = [f"{each.at:%Y-%m-%d %H:%M}" for each in kept[1:]]
            if len(sizes) > 1:
                values["picture"] = bars(f"rows changed at executions of {name}", sizes, labels)
            values["chosen"] = next((each for each in kept if each.execution == execution), None)
        case "how":
            values["networks"] = networks_of(db, views_of(db, values["shown"]))
        case "deliveries":
            values["deliveries"] = db.continual_queries.get(name).deliveries()[
                : -MOST_LISTED - 1 : -1
            ]
    return values


def views_of(db: Database, found: Shown) -> Sequence[str]:
    """The views that a query names; the tables that it reads if it names none."""
    views = [each.name for each in db.views() if each.is_view]
    return db.continual_queries.named_in(found.text, views) or found.query.sources


def networks_of(db: Database, names: Sequence[str]) -> list[tuple[str, Markup]]:
    """The networks of the views that a query reads, with the last wave drawn on them."""
    found = []
    for name in names:
        try:
            found.append((name, drawing(db, name)))
        except HarkenError:
            continue  # a table, or what the user may not look into
    return found


def drawing(db: Database, name: str) -> Markup:
    """The network below a view or a rule. The page's own style replaces that of the picture, which
    its policy forbids."""
    drawn = str(db.explain(name, format="svg"))
    return Markup(re.sub(r"<style>.*?</style>", "", drawn, flags=re.DOTALL))

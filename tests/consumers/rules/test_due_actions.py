"""Detached actions that failed are tried again by themselves, and the operator hears of them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import harken

START = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
SECOND = datetime.timedelta(seconds=1)
RULES = """
create type item properties (quantity integer);
create function post(integer n) -> boolean as foreign;
create rule announce() detached as for each item i, integer n when quantity(i) = n and n < 5
do post(n);
activate announce();
create item instances :pen;
commit;
"""


class Shop:
    """A rule whose action fails while the server is down."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.now, self.is_up, self.posted = START, False, list[int]()
        self.out = path / "ops.jsonl"
        given = {"operator_address": f"file {self.out}", **settings}
        self.db = harken.connect(clock=lambda: self.now, settings=given)
        self.db.amosql(RULES)
        self.db.foreign("post", self.post)

    def post(self, number: int) -> bool:
        if not self.is_up:
            raise ConnectionError("no route to the server")
        self.posted.append(number)
        return True

    def sell(self) -> None:
        with pytest.raises(harken.HarkenError, match="the transaction is committed, but detached"):
            self.db.amosql("set quantity(:pen) = 2; commit;")

    def wait(self) -> float:
        """Until what is due next is done; the seconds."""
        due = self.db.next_due()
        assert due is not None
        waited, self.now = (due - self.now).total_seconds(), max(due, self.now)
        self.db.run_due()
        return waited

    def news(self) -> list[str]:
        if not self.out.exists():
            return []
        lines = [json.loads(each) for each in self.out.read_text().splitlines()]
        return [f"{each['kind']}: {each['text']}" for each in lines]


def test_a_failed_action_is_tried_again_until_it_works(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.sell()
    shop.db.run_due()  # delivers the news
    assert [shop.wait() for _ in range(3)] == [30, 60, 120]
    (action,) = shop.db.detached_actions()
    assert action.attempts == 4
    assert len(shop.news()) == 1
    assert (
        shop.news()[0].startswith(
            "operator_error: The detached action 2 of rule announce failed: [foreign]"
        )
        or "of rule announce failed: [foreign]" in shop.news()[0]
    )
    shop.is_up = True
    assert shop.wait() == 240
    assert shop.posted == [2]
    assert shop.db.detached_actions() == []
    assert shop.db.next_due() is None
    assert [each.split(":")[0] for each in shop.news()] == ["operator_error", "recovered"]


def test_after_some_attempts_it_waits_for_its_operator(tmp_path: Path) -> None:
    shop = Shop(tmp_path, notification_attempts=3)
    shop.sell()
    shop.db.run_due()
    assert [shop.wait(), shop.wait()] == [30, 60]
    assert shop.db.next_due() is None
    assert "After 3 attempts it is not tried again by itself" in shop.news()[-1]
    shop.is_up = True
    assert shop.db.retry_actions() == 1
    assert shop.posted == [2]


def test_without_an_address_for_the_operator_nothing_is_told(tmp_path: Path) -> None:
    shop = Shop(tmp_path, operator_address="")
    shop.sell()
    assert shop.db.notifications.list() == []
    assert shop.wait() == 30


def test_the_error_says_what_was_committed_and_what_was_not(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with pytest.raises(harken.HarkenError) as raised:
        shop.db.amosql("set quantity(:pen) = 2; commit;")
    said = str(raised.value) + str(raised.value.hint)
    assert "the transaction is committed" in said
    assert "nothing of this statement was done" not in said
    assert "retry" in said
    assert shop.db.amosql("select quantity(:pen);")[0].rows == [(2,)]

"""How much work a change of one member is, counted in SQLite's instructions: no clock, no noise.

A condition over groups looks again at the groups that a change reaches. At a fixed size of the
groups that must not depend on how many there are; totals are not kept here, for those are computed
once, from everything.
"""

from __future__ import annotations

import pytest

import harken
from harken import Database
from harken.maintenance import tuning

SCHEMA = """
create type grp properties (name charstring);
create type item properties (grp grp, code integer, quantity integer, weight number);
create function codes() -> integer as select code(i) for each item i;
"""

OBJECTS = "(select {value} for each item i where grp(i) = g{more})"
CODES = "(select {value} for each item i where code(i) = c)"

VIEWS = {
    **{
        aggregate: f"create function view(grp g) -> number as {aggregate}{OBJECTS};".format(
            value="quantity(i)", more=""
        )
        for aggregate in ("sum", "count", "min", "max", "avg")
    },
    **{
        aggregate: f"create function view(grp g) -> boolean as {aggregate}{OBJECTS};".format(
            value="i", more=" and quantity(i) > 5"
        )
        for aggregate in ("some", "notany")
    },
    "of reals": "create function view(grp g) -> number as "
    + f"sum{OBJECTS};".format(value="weight(i) * quantity(i)", more=""),
    "of a derived function": "create function worth(item i) -> number as quantity(i) * weight(i);"
    + "create function view(grp g) -> number as "
    + f"sum{OBJECTS};".format(value="worth(i)", more=""),
    "over a join": "create function view(charstring n) -> integer as select "
    "sum(select quantity(i) for each item i, grp h where grp(i) = h and name(h) = n) "
    "for each grp g where name(g) = n;",
    "by value": "create function view(integer c) -> integer as select "
    + f"sum{CODES} where c = codes();".format(value="quantity(i)"),
    "on two levels": "create function view(grp g) -> integer as "
    + f"sum{OBJECTS};".format(
        value="quantity(i)",
        more=" and quantity(i) < max(select quantity(j) for each item j where grp(j) = g)",
    ),
    "for each member": "create function total(grp g) -> integer as "
    + f"sum{OBJECTS};".format(value="quantity(i)", more="")
    + "create function view(item i) -> number as quantity(i) / total(grp(i));",
}

CHANGES = (
    "set quantity(:i{0}) = 88; set weight(:i{0}) = 8.0;",
    "set grp(:i{0}) = :g1; set code(:i{0}) = 1;",
    "create item(grp, code, quantity, weight) instances :new(:g2, 2, 9, 1.0);",
    "delete :new;",
)


def filled(groups: int, size: int, view: str) -> Database:
    db = harken.connect()
    db.amosql(SCHEMA + view)
    made = db.load("grp", [(f"g{k}",) for k in range(groups)], ["name"])
    items = db.load(
        "item",
        [(made[k % groups], k % groups, 1 + k % 7, 0.5) for k in range(groups * size)],
        ["grp", "code", "quantity", "weight"],
    )
    for name, value in (("g1", made[1]), ("g2", made[2]), ("i3", items[3]), ("i4", items[0])):
        db.assign(name, value)
    db.commit()
    return db


def work(groups: int, size: int, view: str) -> list[int]:
    """The instructions, in tens, that each change takes with its check, when it is not the first
    of its kind: the first may make an index."""
    ticks = 0

    def tick() -> bool:
        nonlocal ticks
        ticks += 1
        return False

    counted = []
    with filled(groups, size, view) as db:
        db.monitor("view", lambda change: None)
        for number in (3, 4):
            counted.clear()
            for change in CHANGES:
                db.internals.connection.raw.set_progress_handler(tick, 10)
                ticks = 0
                db.amosql(change.format(number) + " commit;")
                counted.append(ticks)
    return counted


@pytest.fixture(autouse=True)
def never_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LEAST_GROUP_MEMBERS", float("inf"))


@pytest.mark.parametrize("name", VIEWS)
def test_work_does_not_grow_with_the_number_of_groups(name: str) -> None:
    few, many = work(50, 20, VIEWS[name]), work(500, 20, VIEWS[name])
    for change, before, after in zip(CHANGES, few, many, strict=True):
        assert after < 1.1 * before, change


@pytest.mark.parametrize("name", sorted(VIEWS.keys() - {"for each member", "on two levels"}))
def test_work_grows_with_the_members_of_a_group(name: str) -> None:
    """Each aggregate is computed once for a group, not once for each of its members."""
    few, many = work(4, 20, VIEWS[name]), work(4, 200, VIEWS[name])
    for change, before, after in zip(CHANGES, few, many, strict=True):
        assert after < 11 * before, change

"""Law: where a function's rows lie changes nothing that anyone can see.

Random programs, data and transactions run on databases of which some functions are in the lake and
some are not. No relation is small enough to be fetched as a whole; cached rows are dropped, and
written to the lake, at random moments. Then

- queries answer what the reference interpreter does, and updates leave what the plain model has;
- rules act exactly as they do where everything is resident;
- what is at hand is always what the relation has, and the Delta tables have all of it once flushed.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import harken
from harken import Database, HarkenError
from tests.generators.changes import Scenario
from tests.generators.focuses import FOCUSES
from tests.harness import lakes
from tests.harness.ledgers import Ledger, Row
from tests.harness.twins import Twins
from tests.laws.test_rules import SCHEMA, Active, Transaction, Watcher, active_rules, transactions

pytestmark = pytest.mark.timeout(900)  # a failure takes long to shrink

choices = st.randoms(use_true_random=False)
as_found = [Phase.explicit, Phase.reuse, Phase.generate]
few = settings(max_examples=2, phases=as_found, suppress_health_check=list(HealthCheck))
some = settings(max_examples=4, phases=as_found, suppress_health_check=list(HealthCheck))
many = settings(max_examples=500, phases=as_found, suppress_health_check=list(HealthCheck))
nightly = pytest.mark.nightly
all_night = pytest.mark.timeout(7200)


@pytest.fixture(autouse=True)
def rows_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    lakes.seek_by_key(monkeypatch)
    lakes.write_later(monkeypatch)


# --- queries -----------------------------------------------------------------------------------


class LakeTwins(Twins):
    def _open(self, path: str) -> None:
        super()._open(path)
        lakes.disturb(self.db, self.maker.random)


def converse(focus: str, random: Random, questions: int = 6, rounds: int = 3) -> Counter[str]:
    """Ask, change, and ask the same again."""
    twins = LakeTwins(random, maker=FOCUSES[focus])
    twins.build()
    asked = [twins.random_question() for _ in range(questions)]
    for _ in range(rounds):
        for question in asked:
            twins.ask(question)
            lakes.check(twins.db)
        twins.change()
        twins.change()
    lakes.check_written(twins.db)
    twins.db.close()
    return twins.counts


@pytest.mark.parametrize("focus", FOCUSES)
@given(choices)
@few
def test_answers_are_those_of_the_reference_interpreter(focus: str, random: Random) -> None:
    converse(focus, random)


@nightly
@all_night
@pytest.mark.parametrize("focus", FOCUSES)
@given(choices)
@many
def test_answers_are_those_of_the_reference_interpreter_all_night(
    focus: str, random: Random
) -> None:
    converse(focus, random, questions=12, rounds=5)


# --- updates -----------------------------------------------------------------------------------


class LakeLedger(Ledger):
    def __init__(self, random: Random, path: str = ":memory:") -> None:
        super().__init__(random, path)
        self._disturb()

    def connect(self) -> Database:
        return harken.connect(self.path, engine="lake")

    def reopen(self) -> None:
        super().reopen()
        self._disturb()

    def _disturb(self) -> None:
        """A commit in between would be one that the model does not know of."""
        lakes.disturb(self.db, self.random, commits=False)

    def table(self, name: str, width: int) -> list[Row]:
        if name not in lakes.lake_relations(self.db):
            return super().table(name, width)
        return list(lakes.state(self.db)[name].elements())

    def check(self) -> None:
        super().check()
        lakes.check(self.db)


def live(random: Random, steps: int, path: str = ":memory:", sessions: int = 1) -> None:
    book = LakeLedger(random, path)
    try:
        for session in range(sessions):
            if session:
                book.reopen()
            for _ in range(steps):
                book.step()
        book.check_by_language()
        lakes.check_written(book.db)
    finally:
        book.db.close()


@given(choices)
@some
def test_the_lake_holds_what_the_model_holds(random: Random) -> None:
    live(random, 30)


@given(choices)
@few
def test_the_lake_of_a_file_holds_what_the_model_holds(
    tmp_path_factory: pytest.TempPathFactory, random: Random
) -> None:
    live(random, 8, str(tmp_path_factory.mktemp("lake") / "ledger.db"), sessions=3)


@nightly
@all_night
@given(choices)
@many
def test_the_lake_holds_what_the_model_holds_all_night(random: Random) -> None:
    live(random, 80)


# --- rules -------------------------------------------------------------------------------------


def script(random: Random, transactions: int) -> list[str]:
    """A program with a rule for each derived function, and transactions, some of them undone."""
    scenario = Scenario(random)
    scenario.build(derived=3)
    for number, name in enumerate(scenario.derived):
        scenario.script += _watched(scenario.db, name, number)
    scenario.script.append("commit")
    scenario.db.commit()
    for _ in range(transactions):
        scenario.transaction()
        if scenario.maker.one_in(5):
            scenario.script.append("rollback")
            scenario.db.rollback()
            scenario.refresh()
        else:
            scenario.script.append("commit")
            scenario.db.commit()
    scenario.db.close()
    return scenario.script


def _watched(db: Database, name: str, number: int) -> Iterator[str]:
    """A rule that prints what a function gains; none if its arguments cannot be found."""
    function = db.internals.function(name)
    variables = [f"v{i}" for i in range(len(function.parameters) + len(function.results))]
    declared = ", ".join(
        f"{column.type} {variable}"
        for column, variable in zip(
            (*function.parameters, *function.results), variables, strict=True
        )
    )
    arguments = ", ".join(variables[: len(function.parameters)])
    results = variables[len(function.parameters) :]
    value = f"<{', '.join(results)}>" if len(results) > 1 else results[0]
    rule = (
        f"create rule r{number}() as when for each {declared} "
        f"where {function.name}({arguments}) = {value} do print({number}, {', '.join(variables)})"
    )
    try:
        db.amosql(f"{rule}; activate r{number}()")
    except HarkenError:
        return
    yield rule
    yield f"activate r{number}()"


def replay(texts: list[str], db: Database) -> list[Any]:
    """What each text prints, written out: the objects of two databases are not equal."""
    printed: list[Any] = []
    for text in texts:
        try:
            results = db.amosql(text)
        except HarkenError as error:
            printed.append((text, error.code))
        else:
            printed.append((text, Counter(repr(row) for result in results for row in result.rows)))
    return printed


def contents(db: Database) -> dict[str, Counter[Row]]:
    """The rows of all stored functions, wherever they are."""
    far = lakes.state(db)
    return {
        relation.id: far[relation.id] if relation.id in far else resident(db, relation)
        for relation in db.internals.catalog.stored_relations()
    }


def resident(db: Database, relation: Any) -> Counter[Row]:
    return Counter(db.internals.engine.matching(relation, {}))


def act_alike(random: Random, transactions: int) -> int:
    texts = script(random, transactions)
    with harken.connect() as plain, harken.connect() as lake:
        wanted = replay(texts, plain)
        lakes.disturb(lake, random, commits=False)
        assert replay(texts, lake) == wanted
        assert contents(lake) == contents(plain)
        lakes.check_written(lake)
    return sum(len(rows) for text, rows in wanted if text == "commit")


@given(choices)
@some
def test_rules_act_as_they_do_without_a_lake(random: Random) -> None:
    act_alike(random, 8)


@nightly
@all_night
@given(choices)
@many
def test_rules_act_as_they_do_without_a_lake_all_night(random: Random) -> None:
    act_alike(random, 20)


Inventory = tuple[list[Active], list[Transaction]]
inventories: st.SearchStrategy[Inventory] = st.tuples(
    st.lists(active_rules, min_size=2, max_size=3, unique_by=lambda each: each.rule),
    st.lists(transactions, min_size=3, max_size=4),
)


def acted(db: Database, inventory: Inventory, random: Random | None) -> list[str]:
    """What the rules of an inventory act on, statement by statement."""
    active, transactions = inventory
    db.amosql(SCHEMA)
    for each in active:
        options = each.coupling if each.semantics == "strict" else each.semantics
        db.amosql(each.condition.create(each.rule, options))
    watcher = Watcher(db, active)
    if random is not None:
        lakes.disturb(db, random, commits=False)
    log = []
    for transaction in transactions:
        db.monitoring(transaction.strategy)
        for text in (*transaction.changes, transaction.end):
            shown = {rule: sorted(map(repr, rows)) for rule, rows in watcher.run(text).items()}
            log.append(f"{text} {shown}")
    return log


def inventory_alike(inventory: Inventory, random: Random) -> None:
    with harken.connect() as plain, harken.connect(engine="lake") as lake:
        assert acted(lake, inventory, random) == acted(plain, inventory, None)
        assert contents(lake) == contents(plain)
        lakes.check_written(lake)


@given(inventories, choices)
@few
def test_an_inventory_in_the_lake_is_watched_alike(inventory: Inventory, random: Random) -> None:
    inventory_alike(inventory, random)


@nightly
@all_night
@given(inventories, choices)
@many
def test_an_inventory_in_the_lake_is_watched_alike_all_night(
    inventory: Inventory, random: Random
) -> None:
    inventory_alike(inventory, random)


# --- values ------------------------------------------------------------------------------------

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    "number": st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1.0, 5e-324]),
    "charstring": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
    | st.sampled_from(["", "'", '"', "a\nb", "\ud7ff", "å", "\U0001f600", "%", "a", "A"]),
    "boolean": st.booleans(),
    "date": st.dates() | st.sampled_from([datetime.date.min, datetime.date.max]),
    "timestamp": st.datetimes(timezones=st.just(datetime.UTC)),
}
types = st.sampled_from(list(VALUES))


@st.composite
def functions(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[str, ...], bool, list[Any]]:
    """Arguments, results, whether it is a bag, and changes: rows that come and rows that go."""
    takes = tuple(draw(st.lists(types, max_size=3)))
    gives = tuple(draw(st.lists(types, min_size=1, max_size=2)))
    rows = st.tuples(*(VALUES[each] for each in (*takes, *gives)))
    known = draw(st.lists(rows, min_size=1, max_size=5))
    changes = st.tuples(st.sampled_from(["set", "add", "remove", "commit"]), st.sampled_from(known))
    return takes, gives, draw(st.booleans()), draw(st.lists(changes, min_size=2, max_size=12))


def values_are_kept(function: Any, random: Random) -> None:
    takes, gives, bag, changes = function
    result = f"<{', '.join(gives)}>" if len(gives) > 1 else gives[0]
    statement = f"create function f({', '.join(takes)}) -> {'bag of ' * bag}{result}"
    with harken.connect() as plain, harken.connect(engine="lake") as lake:
        for db in (plain, lake):
            db.amosql(f"{statement}; commit")
        for verb, row in changes:
            found = [change(db, verb, row, len(takes)) for db in (plain, lake)]
            assert found[0] == found[1]
            if not random.randrange(3):
                lakes.let_go(lake)
            assert asked(plain, row, len(takes)) == asked(lake, row, len(takes))
            lakes.check(lake)
        plain.commit()
        lakes.check_written(lake)
        assert contents(plain) == contents(lake)
        lakes.let_go(lake)
        assert items(plain) == items(lake)


def change(db: Database, verb: str, row: Row, width: int) -> str | None:
    handle = db.function("f")
    arguments, value = row[:width], row[width:]
    try:
        match verb:
            case "set":
                handle[arguments] = value if len(value) > 1 else value[0]
            case "add":
                handle.add(*row)
            case "remove":
                handle.remove(*row)
            case "commit":
                db.commit()
                db.flush()
    except HarkenError as error:
        return error.code
    return None


def asked(db: Database, row: Row, width: int) -> Counter[str]:
    """By a query that gives the arguments; repr tells −0.0 from 0.0, 1 from True."""
    for position, value in enumerate(row[:width]):
        db.assign(f"a{position}", value)
    arguments = ", ".join(f":a{position}" for position in range(width))
    return Counter(map(repr, db.amosql(f"f({arguments});").rows))


def items(db: Database) -> Counter[str]:
    return Counter(map(repr, db.function("f").items()))


@given(functions(), choices)
@settings(max_examples=15, phases=as_found, suppress_health_check=list(HealthCheck))
def test_values_are_kept(function: Any, random: Random) -> None:
    values_are_kept(function, random)


@nightly
@all_night
@given(functions(), choices)
@settings(max_examples=3000, suppress_health_check=list(HealthCheck))
def test_values_are_kept_all_night(function: Any, random: Random) -> None:
    values_are_kept(function, random)

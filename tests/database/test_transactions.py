"""Commit and rollback cover data, schema and objects alike; a statement or text happens whole."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import harken
from harken import (
    Database,
    EvaluationError,
    HarkenError,
    IntegrityError,
    NameFault,
    NoValue,
    TypeFault,
    ValueFault,
)
from tests.harness import consistency

SHOP = """
create type item properties (name charstring, quantity integer);
create function tags(item) -> bag of charstring;
create function twice(item i) -> integer as select quantity(i) * 2;
create item(name, quantity) instances :toy("toy", 5), :book("book", 50);
commit;
"""


@pytest.fixture
def shop(db: Database) -> Database:
    db.amosql(SHOP)
    return db


def quantities(db: Database) -> dict[str, int]:
    return dict(db.amosql("select name(i), quantity(i) for each item i;").rows)


def indexes(db: Database) -> set[str]:
    sql = "SELECT name FROM sqlite_schema WHERE type = 'index'"
    return {name for (name,) in db.internals.connection.raw.execute(sql)}


def code_of(action: Callable[[], Any]) -> str:
    with pytest.raises(HarkenError) as caught:
        action()
    return caught.value.code


def change(db: Database) -> None:
    """Data, schema and an object, the first by statement and the second by handle."""
    db.amosql("set quantity(:toy) = 6; create type shelf; create shelf instances :s;")
    db.function("quantity")[db.variables["book"]] = 60


def in_block(db: Database, *actions: Callable[[Database], Any]) -> None:
    with db.transaction():
        for action in actions:
            action(db)


def give_up(db: Database) -> None:
    raise ZeroDivisionError


BEFORE = {"toy": 5, "book": 50}


# --- commit and rollback -------------------------------------------------------------------


def test_a_transaction_begins_with_the_first_change(shop: Database) -> None:
    assert not shop.in_transaction
    shop.amosql("select name(i) for each item i;")
    assert not shop.in_transaction
    shop.amosql("set quantity(:toy) = 6;")
    assert shop.in_transaction
    shop.amosql("commit;")
    assert not shop.in_transaction


def test_rollback_undoes_data(shop: Database) -> None:
    shop.amosql("""
        set quantity(:toy) = 6;
        set name(:book) = "novel";
        add tags(:toy) = "new"; add tags(:toy) = "new";
    """)
    assert quantities(shop) == {"toy": 6, "novel": 50}
    shop.amosql("rollback;")
    assert quantities(shop) == BEFORE
    assert shop.function("tags")[shop.variables["toy"]] == []


def test_rollback_undoes_removed_values_and_deleted_objects(shop: Database) -> None:
    shop.amosql('add tags(:toy) = "a"; add tags(:toy) = "a"; commit;')
    shop.amosql('remove tags(:toy) = "a"; remove quantity(:book) = 50; delete :toy;')
    assert quantities(shop) == {}
    shop.rollback()
    assert quantities(shop) == BEFORE
    assert shop.function("tags")[shop.variables["toy"]] == ["a", "a"]
    assert shop.amosql("select name(:toy);").rows == [("toy",)]


def test_rollback_undoes_objects_and_forgets_their_variables(shop: Database) -> None:
    shop.amosql('create item(name, quantity) instances :new("new", 1);')
    new = shop.variables["new"]
    assert quantities(shop) == {**BEFORE, "new": 1}
    shop.rollback()
    assert quantities(shop) == BEFORE
    assert "new" not in shop.variables
    assert code_of(lambda: shop.amosql("select name(:new);")) == "unknown-variable"
    assert shop.function("name").get(new) is None
    assert code_of(lambda: shop.function("name").__setitem__(new, "ghost")) == "wrong-object"


def test_a_number_is_not_given_again_after_a_rollback(shop: Database) -> None:
    shop.amosql("create item instances :new;")
    first = shop.variables["new"]
    shop.rollback()
    shop.amosql("create item instances :new;")
    assert shop.variables["new"] != first


def test_rollback_keeps_the_variables_of_what_was_committed(shop: Database) -> None:
    shop.amosql("create item instances :kept; commit; rollback;")
    assert "kept" in shop.variables
    shop.amosql("rollback;")
    shop.amosql("set quantity(:kept) = 1; rollback;")
    assert {"toy", "book", "kept"} <= set(shop.variables)
    assert quantities(shop) == BEFORE


def test_variables_are_values_of_the_session_and_not_of_the_transaction(shop: Database) -> None:
    shop.amosql("set :n = 1; set quantity(:toy) = 6; set :n = 2; rollback;")
    assert shop.variables["n"] == 2


def test_rollback_undoes_types_and_functions(shop: Database) -> None:
    shop.amosql("""
        create type shelf properties (width integer);
        create function on_shelf(item) -> shelf;
        create function width_of(item i) -> integer as select width(on_shelf(i));
        create shelf(width) instances :shelf(80);
        set on_shelf(:toy) = :shelf;
    """)
    assert shop.amosql("width_of(:toy);").rows == [(80,)]
    shop.rollback()
    for text, code in [
        ("create shelf instances :s;", "unknown-type"),
        ("select on_shelf(:toy);", "unknown-function"),
        ("width_of(:toy);", "unknown-function"),
    ]:
        assert code_of(lambda text=text: shop.amosql(text)) == code
    consistency.check(shop)
    shop.amosql("create type shelf; create function on_shelf(item) -> integer;")
    shop.amosql("set on_shelf(:toy) = 3;")
    assert shop.amosql("on_shelf(:toy);").rows == [(3,)]


def test_rollback_brings_deleted_types_and_functions_back_with_their_data(shop: Database) -> None:
    shop.amosql(
        "delete function twice; delete function tags; delete :toy, :book; delete type item;"
    )
    assert code_of(lambda: shop.amosql("select i for each item i;")) == "unknown-type"
    shop.rollback()
    assert quantities(shop) == BEFORE
    assert shop.amosql("twice(:toy);").rows == [(10,)]
    consistency.check(shop)


def test_rollback_brings_the_old_definition_back(shop: Database) -> None:
    shop.amosql("create function twice(item i) -> integer as select quantity(i) * 3;")
    assert shop.amosql("twice(:toy);").rows == [(15,)]
    shop.rollback()
    assert shop.amosql("twice(:toy);").rows == [(10,)]
    assert shop.function("twice")[shop.variables["toy"]] == 10


def test_rollback_takes_a_new_overload_away(shop: Database) -> None:
    shop.amosql("""
        create type dear subtype of item;
        add dear to :toy;
        create function twice(dear d) -> integer as select 1000;
    """)
    assert shop.amosql("twice(:toy);").rows == [(1000,)]
    shop.rollback()
    assert shop.amosql("twice(:toy);").rows == [(10,)]
    assert shop.amosql('select twice(i) for each item i where name(i) = "toy";').rows == [(10,)]


def test_rollback_undoes_added_and_removed_types_of_objects(shop: Database) -> None:
    shop.amosql("""
        create type dear subtype of item; create function price(dear) -> integer;
        add dear to :toy; set price(:toy) = 100; commit;
        remove dear from :toy; add dear to :book; set price(:book) = 1;
    """)
    assert shop.amosql("select price(d) for each dear d;").rows == [(1,)]
    shop.rollback()
    assert shop.amosql("select name(d), price(d) for each dear d;").rows == [("toy", 100)]


def test_an_index_made_in_a_transaction_goes_with_it_and_comes_again(shop: Database) -> None:
    before = indexes(shop)
    query = 'select quantity(i) for each item i where name(i) = "toy";'
    shop.amosql("set quantity(:toy) = 6;")
    assert shop.amosql(query).rows == [(6,)]
    assert indexes(shop) > before
    shop.rollback()
    assert indexes(shop) == before
    assert shop.amosql(query).rows == [(5,)]
    shop.amosql("set quantity(:toy) = 6; create type other;")  # compiles everything anew
    assert shop.amosql(query).rows == [(6,)]
    assert indexes(shop) > before
    shop.commit()
    consistency.check(shop)


def test_after_a_rollback_the_old_schema_is_used(shop: Database) -> None:
    """Statements compiled against the undone schema must not be used again."""
    for number in range(3):
        shop.amosql(f"""
            delete function twice;
            delete function quantity;
            create function quantity(item) -> charstring;
            set quantity(:toy) = "number {number}";
        """)
        assert shop.amosql("quantity(:toy);").rows == [(f"number {number}",)]
        shop.rollback()
        assert shop.amosql("quantity(:toy);").rows == [(5,)]
        assert code_of(lambda: shop.amosql('set quantity(:toy) = "x";')) == "type-mismatch"


def test_commit_and_rollback_without_a_transaction_do_nothing(shop: Database) -> None:
    shop.amosql("commit; commit; rollback; rollback; commit work; rollback work;")
    shop.commit()
    shop.rollback()
    assert quantities(shop) == BEFORE


def test_what_is_rolled_back_in_a_file_is_not_there_after_reopening(path: str) -> None:
    with harken.connect(path) as db:
        db.amosql(SHOP)
        db.amosql("set quantity(:toy) = 6; commit; set quantity(:toy) = 7; create type other;")
        db.rollback()
    with harken.connect(path) as db:
        assert quantities(db) == {"toy": 6, "book": 50}
        consistency.check(db)


# --- statements ----------------------------------------------------------------------------


def test_a_statement_that_fails_halfway_changes_nothing(shop: Database) -> None:
    shop.amosql("set quantity(:book) = 9223372036854775807; commit;")
    with shop.transaction(), pytest.raises(EvaluationError):
        shop.amosql("for each item i do set quantity(i) = quantity(i) + 1;")
    assert quantities(shop) == {"toy": 5, "book": 9223372036854775807}


@pytest.mark.parametrize(
    "statement",
    [
        "begin set quantity(:toy) = 1; set quantity(:book) = 1 / 0; end;",
        "begin set quantity(:toy) = 1; create item instances :x; 1 / 0; end;",
        "begin delete :toy; set quantity(:book) = div(1, 0); end;",
        'create item(name, quantity) instances :x("x", 1), :y("y", div(1, 0));',
        "for each item i do if quantity(i) = 5 then set quantity(i) = 1 else delete 5;",
        "set tags(:toy) = select name(i) for each item i where div(1, quantity(i) - 50) = 0;",
        "create type other properties (a integer, a integer);",
        "create type other properties (a integer, b nonsense);",
    ],
)
def test_any_statement_happens_whole_or_not_at_all(shop: Database, statement: str) -> None:
    shop.amosql("set quantity(:toy) = 7;")
    with pytest.raises(HarkenError):
        shop.amosql(statement)
    assert shop.in_transaction
    assert quantities(shop) == {"toy": 7, "book": 50}
    assert "x" not in shop.variables
    consistency.check(shop)
    shop.rollback()
    assert quantities(shop) == BEFORE


def test_a_failed_schema_change_leaves_the_schema_usable(shop: Database) -> None:
    for text in (
        "create type other properties (a integer, a integer);",
        "create function twice(item i) -> integer as select name(i);",
        "create function again(item i) -> integer as select again(i) + nonsense(i);",
        "delete function quantity;",
        "create function f(item i) -> integer as begin set quantity(i) = name(i); end;",
        "delete type item;",
    ):
        with pytest.raises(HarkenError):
            shop.amosql(text)
        assert shop.amosql("twice(:toy);").rows == [(10,)]
        consistency.check(shop)
    assert code_of(lambda: shop.amosql("create other instances :x;")) == "unknown-type"
    assert code_of(lambda: shop.amosql("again(:toy);")) == "unknown-function"


# --- texts ---------------------------------------------------------------------------------


def test_a_text_that_fails_undoes_all_of_itself(shop: Database) -> None:
    with pytest.raises(HarkenError):
        shop.amosql("""
            set quantity(:toy) = 6;
            create type shelf;
            create shelf instances :s;
            delete :book;
            select 1 / 0;
        """)
    assert not shop.in_transaction
    assert quantities(shop) == BEFORE
    assert "s" not in shop.variables
    assert code_of(lambda: shop.amosql("create shelf instances :t;")) == "unknown-type"
    consistency.check(shop)


def test_a_text_that_fails_keeps_what_it_committed(shop: Database) -> None:
    with pytest.raises(HarkenError):
        shop.amosql("""
            set quantity(:toy) = 6;
            create item(name, quantity) instances :kept("kept", 1);
            commit;
            set quantity(:book) = 60;
            create item instances :gone;
            select 1 / 0;
        """)
    assert quantities(shop) == {"toy": 6, "book": 50, "kept": 1}
    assert "kept" in shop.variables
    assert "gone" not in shop.variables


def test_a_text_that_fails_leaves_an_earlier_open_transaction_as_it_was(shop: Database) -> None:
    shop.amosql("set quantity(:toy) = 6; create type shelf; create shelf instances :s;")
    with pytest.raises(HarkenError):
        shop.amosql("""
            set quantity(:toy) = 7;
            create type box;
            create function in_box(item) -> box;
            delete function twice;
            create item instances :gone;
            select 1 / 0;
        """)
    assert shop.in_transaction
    assert quantities(shop) == {"toy": 6, "book": 50}
    assert "s" in shop.variables
    assert "gone" not in shop.variables
    assert shop.amosql("twice(:toy);").rows == [(12,)]
    assert code_of(lambda: shop.amosql("create box instances :b;")) == "unknown-type"
    shop.amosql("create shelf instances :t; commit;")
    assert quantities(shop) == {"toy": 6, "book": 50}
    consistency.check(shop)


def test_a_text_that_commits_and_then_fails_ends_an_earlier_open_transaction(
    shop: Database,
) -> None:
    shop.amosql("set quantity(:toy) = 6;")
    with pytest.raises(HarkenError):
        shop.amosql("set quantity(:book) = 60; commit; set quantity(:toy) = 7; select 1 / 0;")
    assert not shop.in_transaction
    assert quantities(shop) == {"toy": 6, "book": 60}


def test_a_text_that_rolls_back_and_then_fails(shop: Database) -> None:
    shop.amosql("set quantity(:toy) = 6;")
    with pytest.raises(HarkenError):
        shop.amosql("set quantity(:book) = 60; rollback; set quantity(:toy) = 7; select 1 / 0;")
    assert not shop.in_transaction
    assert quantities(shop) == BEFORE


def test_a_text_that_does_not_parse_runs_not_at_all(shop: Database) -> None:
    with pytest.raises(harken.SyntaxFault):
        shop.amosql("set quantity(:toy) = 6; commit; set quantity(:toy = 7;")
    assert quantities(shop) == BEFORE


def test_results_before_the_failure_were_printed_at_once(shop: Database) -> None:
    told: list[list[tuple[Any, ...]]] = []
    with pytest.raises(HarkenError):
        shop.run_program("amosql", "1; 2; 1 / 0; 3;", lambda result: told.append(result.rows))
    assert told == [[(1,)], [(2,)]]


def test_a_listener_that_fails_undoes_the_text(shop: Database) -> None:
    def fail(result: harken.Result) -> None:
        raise KeyError("listener")

    with pytest.raises(KeyError, match="listener"):
        shop.run_program("amosql", "set quantity(:toy) = 6; 1; set quantity(:toy) = 7;", fail)
    assert not shop.in_transaction
    assert quantities(shop) == BEFORE


def test_an_interrupt_undoes_the_text(shop: Database) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    shop.foreign("interrupt", interrupt)
    with pytest.raises(KeyboardInterrupt):
        shop.amosql("set quantity(:toy) = 6; interrupt();")
    assert not shop.in_transaction
    assert quantities(shop) == BEFORE


# --- blocks --------------------------------------------------------------------------------


def test_a_block_commits_at_its_end(shop: Database) -> None:
    with shop.transaction() as same:
        assert same is shop
        shop.amosql("set quantity(:toy) = 6;")
        shop.function("quantity")[shop.variables["book"]] = 60
        assert shop.in_transaction
    assert not shop.in_transaction
    shop.rollback()
    assert quantities(shop) == {"toy": 6, "book": 60}


def test_a_block_that_raises_is_undone(shop: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        in_block(shop, change, give_up)
    assert not shop.in_transaction
    assert quantities(shop) == BEFORE
    assert "s" not in shop.variables
    consistency.check(shop)


def test_a_failed_statement_in_a_block_can_be_caught(shop: Database) -> None:
    with shop.transaction():
        shop.amosql("set quantity(:toy) = 6;")
        with pytest.raises(EvaluationError):
            shop.amosql("set quantity(:book) = 60; set quantity(:book) = div(1, 0);")
        with pytest.raises(ValueFault):
            shop.function("quantity")[shop.variables["book"]] = "many"
        with pytest.raises(ValueFault):
            shop.load("item", [("a", 1), ("b", "two")], ["name", "quantity"])
        shop.function("quantity")[shop.variables["book"]] = 61
    assert quantities(shop) == {"toy": 6, "book": 61}


def test_blocks_do_not_nest(shop: Database) -> None:
    with shop.transaction():
        shop.amosql("set quantity(:toy) = 6;")
        with pytest.raises(IntegrityError) as caught, shop.transaction():
            pytest.fail("the inner block must not run")
        assert caught.value.code == "transaction"
        assert caught.value.hint
        shop.amosql("set quantity(:book) = 60;")
    assert quantities(shop) == {"toy": 6, "book": 60}


@pytest.mark.parametrize("commit", [lambda db: db.amosql("commit;"), lambda db: db.commit()])
def test_commit_in_a_block_is_refused(shop: Database, commit: Callable[[Database], Any]) -> None:
    with pytest.raises(IntegrityError) as caught:
        in_block(shop, change, commit)
    assert caught.value.code == "transaction"
    assert caught.value.hint
    assert quantities(shop) == BEFORE


@pytest.mark.parametrize(
    "rollback",
    [
        lambda db: db.amosql("rollback;"),
        lambda db: db.rollback(),
        lambda db: db.amosql("begin set quantity(:book) = 1; rollback; end;"),
    ],
)
def test_rollback_in_a_block_undoes_it(shop: Database, rollback: Callable[[Database], Any]) -> None:
    with pytest.raises(IntegrityError) as caught:
        in_block(shop, change, rollback, lambda db: pytest.fail("the block ends before"))
    assert caught.value.code == "rolled-back"
    assert not shop.in_transaction
    assert quantities(shop) == BEFORE

    def caught_rollback(db: Database) -> None:
        with suppress(IntegrityError):
            rollback(db)

    with pytest.raises(IntegrityError) as caught:
        in_block(shop, change, caught_rollback, lambda db: db.amosql("set quantity(:toy) = 7;"))
    assert caught.value.code == "rolled-back"
    assert quantities(shop) == BEFORE


def test_closing_in_a_block_is_refused(shop: Database) -> None:
    with pytest.raises(IntegrityError) as caught:
        in_block(shop, change, Database.close)
    assert caught.value.code == "transaction"
    assert quantities(shop) == BEFORE


def test_a_block_joins_an_open_transaction_and_commits_it(shop: Database) -> None:
    shop.amosql("set quantity(:toy) = 6;")
    with shop.transaction():
        shop.amosql("set quantity(:book) = 60;")
    assert not shop.in_transaction
    assert quantities(shop) == {"toy": 6, "book": 60}


def test_a_block_that_joined_and_raises_undoes_itself_alone(shop: Database) -> None:
    shop.amosql('set name(:toy) = "doll";')
    with pytest.raises(ZeroDivisionError):
        in_block(shop, change, give_up)
    assert shop.in_transaction
    assert quantities(shop) == {"doll": 5, "book": 50}
    assert "s" not in shop.variables
    shop.rollback()
    assert quantities(shop) == BEFORE


def test_a_block_of_nothing_changes_nothing(shop: Database) -> None:
    with shop.transaction():
        pass
    assert not shop.in_transaction


def test_the_time_stands_still_in_a_transaction(db: Database) -> None:
    db.amosql(
        "create function first() -> timestamp; create function second() -> timestamp; commit;"
    )
    with db.transaction():
        db.amosql("set first() = now();")
        db.amosql("set second() = now();")
    assert db.amosql("select first() = second();").rows == [(True,)]


# --- closing -------------------------------------------------------------------------------


def test_close_commits(path: str) -> None:
    db = harken.connect(path)
    db.amosql(SHOP)
    db.amosql("set quantity(:toy) = 6;")
    db.close()
    db.close()
    with harken.connect(path) as db:
        assert quantities(db) == {"toy": 6, "book": 50}


def test_leaving_with_commits(path: str) -> None:
    with harken.connect(path) as db:
        db.amosql(SHOP)
        db.amosql("set quantity(:toy) = 6;")
    with harken.connect(path) as db:
        assert quantities(db) == {"toy": 6, "book": 50}


def test_leaving_with_an_exception_rolls_back(path: str) -> None:
    def use() -> None:
        with harken.connect(path) as db:
            db.amosql(SHOP)
            change(db)
            give_up(db)

    with pytest.raises(ZeroDivisionError):
        use()
    with harken.connect(path) as db:
        assert quantities(db) == BEFORE


def test_a_database_that_is_forgotten_without_closing_was_not_committed(path: str) -> None:
    db = harken.connect(path)
    db.amosql(SHOP)
    db.amosql("set quantity(:toy) = 6;")
    del db
    with harken.connect(path) as db:
        assert quantities(db) == BEFORE


def test_a_closed_database_says_so(shop: Database) -> None:
    quantity, toy = shop.function("quantity"), shop.variables["toy"]
    shop.close()
    for attempt in (
        lambda: shop.amosql("1;"),
        lambda: shop.run_program("amosql", "1;", print),
        lambda: shop.function("quantity"),
        lambda: shop.load("item", [], ["name"]),
        lambda: shop.foreign("f", print),
        lambda: shop.explain("twice", verbose=True),
        lambda: shop.transaction().__enter__(),
        shop.commit,
        shop.rollback,
        lambda: quantity[toy],
        lambda: quantity.get(toy),
        lambda: quantity.__setitem__(toy, 6),
        lambda: list(quantity.items()),
    ):
        assert code_of(attempt) == "closed"
    assert not shop.in_transaction


# --- procedures ----------------------------------------------------------------------------


def test_an_error_in_the_loop_of_a_procedure_undoes_all_its_rounds(shop: Database) -> None:
    shop.amosql("""
        create function drain(integer n) -> boolean as begin
            for each item i do begin
                add tags(i) = "seen";
                set quantity(i) = div(quantity(i), quantity(i) - n);
            end;
        end;
        commit;
        set quantity(:toy) = 6;
    """)
    for n in (6, 50):
        assert code_of(lambda n=n: shop.amosql(f"drain({n});")) == "division-by-zero"
        assert quantities(shop) == {"toy": 6, "book": 50}
        assert shop.amosql("select tags(i) for each item i;").rows == []


def test_rollback_in_a_procedure_undoes_the_transaction_and_ends_the_procedure(
    shop: Database,
) -> None:
    shop.amosql("""
        create function try_it(item i) -> boolean as begin
            set quantity(i) = 1;
            if quantity(i) < 10 then rollback;
            set quantity(i) = 2;
        end;
        commit;
        set quantity(:book) = 60;
        create item instances :gone;
    """)
    shop.amosql('try_it(:toy); set name(:toy) = "doll";')
    assert quantities(shop) == {"doll": 5, "book": 50}
    assert "gone" not in shop.variables
    shop.rollback()
    assert quantities(shop) == BEFORE


def test_rollback_in_a_called_procedure_ends_the_callers_too(shop: Database) -> None:
    shop.amosql("""
        create function inner() -> boolean as begin rollback; end;
        create function outer(item i) -> boolean as begin
            set quantity(i) = 1;
            inner();
            set quantity(i) = 2;
        end;
        commit;
        outer(:toy);
    """)
    assert quantities(shop) == BEFORE


def test_commit_in_a_procedure_is_refused(shop: Database) -> None:
    text = "create function p(item i) -> boolean as begin set quantity(i) = 1; commit; end;"
    assert code_of(lambda: shop.amosql(text)) == "side-effect"
    assert code_of(lambda: shop.amosql("p(:toy);")) == "unknown-function"


def test_commit_and_rollback_in_a_foreign_procedure_are_refused(shop: Database) -> None:
    """They would end the transaction under the statement that calls it."""
    shop.foreign("commits", lambda: shop.commit())
    shop.foreign("rolls_back", lambda: shop.rollback())
    shop.foreign("runs_commit", lambda: shop.amosql("set quantity(:book) = 0; commit;"))
    shop.foreign("closes", lambda: shop.close())
    shop.foreign("blocks", lambda: in_block(shop))
    shop.amosql("set quantity(:toy) = 6;")
    for name in ("commits", "rolls_back", "runs_commit", "closes", "blocks"):
        error = code_of(
            lambda name=name: shop.amosql(f"begin set quantity(:toy) = 7; {name}(); end;")
        )
        assert error == "transaction"
        assert shop.in_transaction
        assert quantities(shop) == {"toy": 6, "book": 50}
    shop.rollback()
    assert quantities(shop) == BEFORE


def test_a_text_run_by_a_foreign_procedure_is_part_of_the_statement(shop: Database) -> None:
    shop.foreign("restock", lambda: shop.amosql("set quantity(:toy) = 100;"))
    shop.amosql("set quantity(:book) = 60;")
    assert code_of(lambda: shop.amosql("begin restock(); div(1, 0); end;")) == "division-by-zero"
    assert quantities(shop) == {"toy": 5, "book": 60}
    assert code_of(lambda: shop.amosql("restock(); div(1, 0);")) == "division-by-zero"
    assert quantities(shop) == {"toy": 5, "book": 60}
    shop.amosql("restock(); commit;")
    assert quantities(shop) == {"toy": 100, "book": 60}


def test_an_error_caught_inside_a_foreign_procedure_undoes_only_its_text(shop: Database) -> None:
    def careful() -> None:
        shop.amosql("set quantity(:toy) = 100;")
        with pytest.raises(HarkenError):
            shop.amosql("set quantity(:book) = 100; select 1 / 0;")

    shop.foreign("careful", careful)
    shop.amosql("careful(); commit;")
    assert quantities(shop) == {"toy": 100, "book": 50}


def test_an_undone_object_is_no_longer_of_its_type(shop: Database) -> None:
    """What the session remembers of objects must be forgotten with them."""
    shop.amosql("create type dear subtype of item; create function price(dear) -> integer; commit;")
    shop.amosql("add dear to :toy; set price(:toy) = 1; rollback;")
    with pytest.raises(TypeFault):
        shop.amosql("set price(:toy) = 1;")
    with shop.transaction(), pytest.raises(EvaluationError):
        shop.amosql("add dear to :toy; set price(:toy) = 1; select 1 / 0;")
    with pytest.raises(TypeFault):
        shop.amosql("set price(:toy) = 1;")


def test_handles_follow_a_rollback(shop: Database) -> None:
    toy = shop.variables["toy"]
    shop.amosql("create function price(item) -> integer; set price(:toy) = 1;")
    price = shop.function("price")
    assert price[toy] == 1
    shop.rollback()
    with pytest.raises((NameFault, TypeFault)) as caught:
        price[toy]
    assert caught.value.code == "unknown-function"
    shop.amosql("create function price(item) -> charstring;")
    with pytest.raises(NoValue):
        price[toy]
    price[toy] = "cheap"
    assert price[toy] == "cheap"


def test_a_known_statement_that_fails_leaves_no_transaction_open() -> None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, v INT)")
        db.sql("INSERT INTO t VALUES (1, 1)")
        for _ in range(3):
            with pytest.raises(HarkenError, match="t"):
                db.sql("INSERT INTO t VALUES (1, 2)")
            assert not db.in_transaction

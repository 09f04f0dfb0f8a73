"""Programs that differ in constants alone become one."""

import harken
from harken.database.system import parameters_relation
from harken.ir.clauses import Definition
from harken.planner.share_constants import SharedProgram, share_constants
from harken.statements.sql.compiled_continual import query_compiler


def shared(text: str) -> SharedProgram | None:
    with harken.connect() as db:
        db.sql("CREATE TABLE t (k INT PRIMARY KEY, g STRING, x INT); CREATE TABLE u (k INT, n INT)")
        compiled = query_compiler(db.internals.runtime)(text, "owner")
        goal = compiled.program.goal
        return share_constants(
            sorted(compiled.own, key=lambda each: each.relation != goal), parameters_relation
        )


def constants(found: SharedProgram | None) -> list[object]:
    assert found is not None
    return [getattr(each, "value", None) for each in found.constants]


def reads_parameters(found: SharedProgram) -> list[Definition]:
    return [each for each in found.definitions if each.relation.columns[:1] == first(found)]


def first(found: SharedProgram) -> tuple[object, ...]:
    return found.goal.columns[:1]


def test_queries_that_differ_in_constants_have_one_label() -> None:
    one, other = (shared(f"SELECT k FROM t WHERE x > {n} AND g = 'g{n}'") for n in (5, 6))
    assert one is not None
    assert other is not None
    assert one.label == other.label
    assert one.goal == other.goal
    assert constants(one) == [5, "g5"]
    assert constants(other) == [6, "g6"]
    third = shared("SELECT k FROM t WHERE x >= 5 AND g = 'g5'")
    assert third is not None
    assert third.label != one.label


def test_what_depends_on_no_constant_is_the_same_for_all() -> None:
    found = shared("SELECT g, count(*) AS n FROM t GROUP BY g HAVING count(*) > 3")
    assert found is not None
    assert constants(found) == [3]
    assert [each.relation for each in reads_parameters(found)] == [found.goal]
    assert len(found.definitions) > 1


def test_the_members_of_a_group_depend_on_the_query() -> None:
    found = shared("SELECT count(*) AS n FROM t WHERE x > 3")
    assert found is not None
    assert len(reads_parameters(found)) == len(found.definitions) == 2


def test_constants_that_are_shown_or_among_a_list() -> None:
    assert constants(shared("SELECT k, 7 AS seven FROM t WHERE x IN (1, 2)")) == [1, 2, 7]


def test_no_constant() -> None:
    found = shared("SELECT k FROM t")
    assert found is not None
    assert found.parameters is None
    assert found.goal.arity == 1


def test_patterns_and_limits_stay() -> None:
    assert constants(shared("SELECT k FROM t WHERE g LIKE 'a%' ORDER BY x LIMIT 3")) == []


def test_what_is_not_shared() -> None:
    assert shared("SELECT k FROM t WHERE x > 3 ORDER BY k LIMIT 2") is None
    assert shared("SELECT k FROM t WHERE g = 'a' ORDER BY k LIMIT 2") is not None
    recursive = (
        "WITH RECURSIVE r (k, n) AS (SELECT k, n FROM u WHERE k = 1 UNION "
        "SELECT u.k, u.n FROM u JOIN r ON u.k = r.n) SELECT * FROM r"
    )
    assert shared(recursive) is None

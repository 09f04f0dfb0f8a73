"""A join by a computed value looks its rows up, in both states.

Law: what a change of such a join costs grows with the pairs that the value is computed of, not with
the rows that it is looked up in.
"""

from __future__ import annotations

import harken
from tests.harness.counting import counted

PROGRAM = """
.decl num(x: number)
.decl composite(x: number)
.decl prime(x: number)
composite(z) :- num(x), num(y), num(z), z = x * y.
prime(x) :- num(x), !composite(x).
"""


def _steps(numbers: int) -> int:
    with harken.connect() as db:
        db.datalog(PROGRAM)
        db.datalog("\n".join(f"num({x})." for x in range(2, numbers)))
        changes = db.monitor("prime", strategy="naive")

        def change() -> None:
            db.sql("DELETE FROM num WHERE x = 7")
            db.sql("INSERT INTO num VALUES (7)")

        change()
        found = counted(db, change)
        first, second = changes.changes()[-2:]
        assert (7,) in first.minus
        assert (first.plus, first.minus) == (second.minus, second.plus)
        return found.steps


def test_the_old_state_of_a_join_is_looked_up() -> None:
    assert _steps(160) < 6 * _steps(80)

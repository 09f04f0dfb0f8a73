"""The translation gives the clauses that the papers print, but for the names of their variables.

Thesis, section 4.3; chapter on rule conditions, section 1.4.2.
"""

from __future__ import annotations

import re
from pathlib import Path

import harken

CASES = Path(__file__).parents[2] / "cases"
COND_NO_HIGH = """
    mgr_department,manager(D, _G1) ∧
    income_employee,number(_G1, _G2) ∧
    _G3 = _G2 + 100.0 ∧
    _G4 = _G3 * 0.75 ∧
    dept_employee,department(E, D) ∧
    income_employee,number(E, _G5) ∧
    _G6 = _G5 * 0.75 ∧
    _G6 > _G4
"""
CND_MONITOR_ITEMS = "quantity_item,integer(I, G1) ∧ threshold_item,integer(I, G2) ∧ G1 < G2"
THRESHOLD = """
    consume_freq_item,integer(I, G1) ∧
    delivery_time_item,supplier,integer(I, G2, G3) ∧
    supplies_supplier,item(G2, I) ∧
    G4 = G1 * G3 ∧
    min_stock_item,integer(I, G5) ∧
    T = G4 + G5
"""
FULL_THRESHOLD = f"quantity_item,integer(I, G1) ∧ {THRESHOLD} ∧ G1 < T"


def database(case: str) -> harken.Database:
    db = harken.connect()
    db.amosql((CASES / case).read_text("utf-8").split("commit;")[0])
    return db


def bodies(db: harken.Database, function: str, heading: str) -> dict[str, list[str]]:
    """The bodies of the clauses under a heading of `explain`, by the names of their heads."""
    text = (
        str(db.explain(function, verbose=True)).split(f"{heading}:\n\n")[1].split("\n\nAs SQL")[0]
    )
    clauses = text.split("\n\nExpanded:")[0].split("\n\n")
    return {clause.split("(")[0]: literals(clause.split("←")[1]) for clause in clauses}


def literals(body: str) -> list[str]:
    """The literals of a body in alphabetical order, with its variables all alike."""
    return sorted(re.sub(r"\b_?[A-Z]\w*", "V", each.strip()) for each in body.split("∧"))


def test_the_condition_of_no_high_is_expanded_to_stored_functions() -> None:
    db = database("paper_toys.amosql")
    expanded = bodies(db, "cnd_no_high", "Expanded")
    assert expanded == {"cnd_no_high_department,employee": literals(COND_NO_HIGH)}


def test_the_condition_of_monitor_items_and_its_threshold() -> None:
    db = database("paper_factory.amosql")
    db.amosql("""create function cnd_monitor_items() -> item as
        select i for each item i where quantity(i) < threshold(i);""")
    assert bodies(db, "cnd_monitor_items", "As ObjectLog") == {
        "cnd_monitor_items_item": literals(CND_MONITOR_ITEMS),
        "threshold_item,integer": literals(THRESHOLD),
    }
    expanded = bodies(db, "cnd_monitor_items", "Expanded")
    assert expanded == {"cnd_monitor_items_item": literals(FULL_THRESHOLD)}


def test_late_binding_stays_in_the_clauses() -> None:
    db = database("paper_late_netincome.amosql")
    clauses = bodies(db, "netincome", "As ObjectLog")
    assert clauses["netincome_employee,number"] == literals(
        "grossincome*_employee,number(E, _G1) ∧ _G2 = _G1 * 0.75"
    )

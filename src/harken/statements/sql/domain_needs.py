"""What a statement over a domain needs of the members that are asked.

Names of the domain are translated to those of the member. A condition on a name that the member
does not have is never true, so the member is not asked at all.

Law: no row that could satisfy the statement is left out by what is pushed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harken.database.function_tables import table_of
from harken.intake.source_needs import Need
from harken.ir.schema import Function
from harken.lang.sql.domain_statements import MEMBER, DomainWords, Member
from harken.sources.outside import Condition
from harken.values.types import Type


def need_of_member(
    need: Need, words: DomainWords, member: Member, domain: Function, function: Function
) -> Need:
    """`need` is that of the domain."""
    names = need.columns if need.columns is not None else (words.columns or ())
    columns = tuple(dict.fromkeys(c for name in names for c in member.columns_of(name)))
    types, own = _types(domain), _types(function)
    found = []
    for each in need.conditions:
        places = member.columns_of(each.column)
        if each.column == MEMBER:
            if not _holds(each, member.name):
                return Need(columns, why_not=f"its rows are those of {member.name}")
        elif not places:
            if each.operator != "is null":
                return Need(columns, why_not=f"it has no {each.column}")
        elif len(places) == 1 and own[places[0]].name == types[each.column].name:
            found.append(Condition(places[0], each.operator, each.values))
    return Need(columns, tuple(found), may_fail=words.skips)


def _types(function: Function) -> Mapping[str, Type]:
    return {each.name: each.type for each in table_of(function).columns}


def _holds(condition: Condition, value: str) -> bool:
    values: tuple[Any, ...] = condition.values
    match condition.operator:
        case "is null":
            return False
        case "is not null":
            return True
        case "in" | "=":
            return value in values
        case "<>":
            return value not in values
        case "<":
            return bool(value < values[0])
        case "<=":
            return bool(value <= values[0])
        case ">":
            return bool(value > values[0])
        case ">=":
            return bool(value >= values[0])

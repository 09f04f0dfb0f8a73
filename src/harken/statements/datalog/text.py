"""The text that the catalog keeps of a relation of Datalog.

It holds all that the relation means: the declared types it needs, its declaration, its rules as
they were written, and its limit. So a database that is opened again knows what it knew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from harken.lang.datalog import syntax
from harken.lang.datalog.kinds import Types
from harken.lang.datalog.parser import parse
from harken.lang.datalog.tree_walk import nodes


def facts_name(name: str) -> str:
    """The stored relation that holds the facts of a relation that has rules as well."""
    return f"{name} facts"


@dataclass(frozen=True, slots=True)
class Kept:
    declaration: syntax.Declaration
    rules: tuple[syntax.Rule, ...]
    rule_texts: tuple[str, ...]
    types: tuple[tuple[syntax.TypeDeclaration, str], ...]
    limit: int | None


@lru_cache(maxsize=4096)
def kept(text: str) -> Kept:
    statements = parse(text).statements
    rules = tuple(each for each in statements if isinstance(each, syntax.Rule))
    limits = [
        int(each.parameters["n"]) for each in statements if isinstance(each, syntax.Directive)
    ]
    return Kept(
        declaration=next(each for each in statements if isinstance(each, syntax.Declaration)),
        rules=rules,
        rule_texts=tuple(text[each.span.start : each.span.end] for each in rules),
        types=tuple(
            (each, text[each.span.start : each.span.end])
            for each in statements
            if isinstance(each, syntax.TypeDeclaration)
        ),
        limit=limits[0] if limits else None,
    )


def relation_text(
    declaration: syntax.Declaration,
    types: Types,
    rules: Iterable[str],
    limit: int | None,
    parsed: Iterable[syntax.Rule] = (),
) -> str:
    """The text to keep: the types that the attributes and the casts of the rules name, the
    declaration and the rules, which are `parsed` as well."""
    attributes = ", ".join(f"{each.name}: {each.type}" for each in declaration.attributes)
    casts = [each for rule in parsed for each in nodes(rule) if isinstance(each, syntax.Cast)]
    declared = [each.type for each in declaration.attributes]
    lines = types.texts_of([*declared, *(each.type for each in casts)])
    lines.append(f".decl {declaration.name}({attributes})")
    lines += rules
    if limit is not None:
        lines.append(f".limitsize {declaration.name}(n={limit})")
    return "\n".join(lines)

"""The text that the catalog keeps for a Datalog relation.

It is self-contained: the declared types it needs, its declaration, its rules as they were written,
and its limit. So a reopened database has everything that defines the relation.
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
    """The name of the stored relation for the facts of a relation with rules."""
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
    """The text to keep: the types named by the attributes and by casts in the rules, the
    declaration, and the rules, which are also passed in `parsed` form."""
    attributes = ", ".join(f"{each.name}: {each.type}" for each in declaration.attributes)
    casts = [each for rule in parsed for each in nodes(rule) if isinstance(each, syntax.Cast)]
    declared = [each.type for each in declaration.attributes]
    lines = types.texts_of([*declared, *(each.type for each in casts)])
    lines.append(f".decl {declaration.name}({attributes})")
    lines += rules
    if limit is not None:
        lines.append(f".limitsize {declaration.name}(n={limit})")
    return "\n".join(lines)

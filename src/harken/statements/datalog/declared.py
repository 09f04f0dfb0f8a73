"""What a text of Datalog declares: relations with their rules, and facts.

A relation is its declaration, the types that it needs, its rules and its limit, in whatever order
they stand. Its text is written out from them, so components and inlining are done with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harken.database.language_names import SQL
from harken.errors import Span
from harken.lang.datalog import syntax
from harken.lang.datalog.components import expand
from harken.lang.datalog.inlining import write_out
from harken.lang.datalog.parser import Program, parse
from harken.lang.datalog.rule_text import write
from harken.lang.datalog.tree_walk import nodes
from harken.statements.declaration import FACT, RELATION, SEEDS, Declaration, Part, not_declared

STEPS = (
    *(syntax.Change, syntax.Query, syntax.Commit, syntax.Monitor, syntax.Run, syntax.Activation),
    *(syntax.ProductionRule, syntax.Priority, syntax.ProgramOption),
)


@dataclass(slots=True)
class _Relation:
    declaration: syntax.Declaration
    rules: list[syntax.Rule] = field(default_factory=list)
    limit: str | None = None


def declarations(text: str) -> Iterator[Declaration]:
    program = write_out(expand(parse(text)))
    relations = {
        each.name: _Relation(each)
        for each in program.statements
        if isinstance(each, syntax.Declaration)
    }
    facts: list[tuple[syntax.Atom, Span]] = []
    for statement in program.statements:
        match statement:
            case syntax.Rule() if statement.is_fact:
                facts += [(head, statement.span) for head in statement.heads]
            case syntax.Rule():
                for name in dict.fromkeys(head.name for head in statement.heads):
                    _declared(relations, name, statement.span).rules.append(statement)
            case syntax.Directive(kind="limitsize"):
                found = _declared(relations, statement.relation, statement.span)
                found.limit = statement.parameters.get("n", "")
            case syntax.Directive():
                hint = SEEDS if statement.kind == "input" else None
                raise not_declared(f".{statement.kind}", statement.span, hint)
            case _ if isinstance(statement, STEPS):
                raise not_declared("a step of a script", statement.span)
    types = [each for each in program.statements if isinstance(each, syntax.TypeDeclaration)]
    for each in relations.values():
        yield _relation(program, each, types)
    for atom, span in facts:
        yield _fact(atom, span)


def _declared(relations: dict[str, _Relation], name: str, span: Span) -> _Relation:
    if name not in relations:
        raise not_declared(
            f"a rule of {name}, which this file does not declare,",
            span,
            f"write .decl {name}(...) and all its rules in one file",
        )
    return relations[name]


def _relation(
    program: Program, relation: _Relation, types: list[syntax.TypeDeclaration]
) -> Declaration:
    node = relation.declaration
    attributes = ", ".join(f"{each.name}: {each.type}" for each in node.attributes)
    parts = [Part(f"{program.text_of(each)}\n") for each in _needed(relation, types)]
    parts.append(Part(f".decl {node.name}({attributes})", node.span.start))
    for rule in relation.rules:
        parts.append(Part("\n"))
        parts.append(Part(program.text_of(rule), None if rule.made else rule.span.start))
    if relation.limit is not None:
        parts.append(Part(f"\n.limitsize {node.name}(n={relation.limit})"))
    mentioned = {each.name for rule in relation.rules for each in _atoms(rule.body)}
    meaning = [write(each) for each in _needed(relation, types)]
    meaning += [f".decl {node.name}({attributes})", *sorted(map(write, relation.rules))]
    meaning += [f".limitsize {relation.limit}"] if relation.limit is not None else []
    return Declaration(
        kind=RELATION,
        name=node.name,
        span=node.span,
        meaning="\n".join(meaning),
        parts=tuple(parts),
        removal=f"DROP {'VIEW' if relation.rules else 'TABLE'} `{node.name}`",
        removal_language=SQL,
        called=frozenset({node.name.lower()}),
        needs=frozenset(each.lower() for each in mentioned) - {node.name.lower()},
        has_rows=not relation.rules,
        columns=tuple(each.name.lower() for each in node.attributes),
    )


def _atoms(body: syntax.Formula | None) -> Iterator[syntax.Atom]:
    return (each for each in nodes(body) if isinstance(each, syntax.Atom))


def _needed(
    relation: _Relation, types: list[syntax.TypeDeclaration]
) -> list[syntax.TypeDeclaration]:
    """The declared types that a relation names, and those that they are made of."""
    casts = [each.type for rule in relation.rules for each in nodes(rule) if _is_cast(each)]
    wanted = {*casts, *(each.type for each in relation.declaration.attributes)}
    size = -1
    while size != len(wanted):
        size = len(wanted)
        wanted |= {base for each in types if each.name in wanted for base in each.bases}
    return [each for each in types if each.name in wanted]


def _is_cast(node: object) -> bool:
    return isinstance(node, syntax.Cast)


def _fact(atom: syntax.Atom, span: Span) -> Declaration:
    text = write(syntax.Rule((atom,), None, span)).rstrip().removesuffix(".")
    return Declaration(
        kind=FACT,
        name=text,
        span=span,
        meaning=text,
        parts=(Part(f"{text}."),),
        removal=f"-{text}.",
        needs=frozenset({atom.name.lower()}),
        in_place=True,
    )

"""What the analysis says of a program, in the layout of the paper (section 5.4).

    r1 : Subexp :
      e1 = Π{x,z}(σ[2="alpha"] A(x,y) ⋈ ...) ⟕ C(x,z)
      ∂e1+/∂+C = (Π{x,z} T1 ⋈ Δ+C(x,z)) × {f_C=true}
    Effect :
      e2 = Π{x,z}(σ[f_C=false] T1)
      Materialize : false

Before the rules stand the influence graph and what priorities leave of it (tables 5.1 and 5.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from harken.api.program_notation import atom_text, columns_text, delta_text, join_text, joined_text
from harken.calculus.autonomy import Change, changes_of, criterion
from harken.calculus.influence import InfluenceGraph
from harken.calculus.profitable_relations import Profitable
from harken.calculus.rule_annotations import AnnotatedProgram, EffectAnnotation, RuleAnnotation
from harken.calculus.rule_formulas import Bases, Occurrence
from harken.ir.productions import Firing
from harken.ir.terms import Variable


def explain_program(program: AnnotatedProgram, bases: Bases) -> str:
    lines = ["Influence graph:", *_table(program.complete)]
    lines += ["", "Relevant under the priorities:", *_table(program.relevant)]
    expressions, tables = count(1), count(1)
    for rule in program.rules:
        lines += ["", *_rule(rule, bases, expressions, tables)]
    return "\n".join(lines)


def _table(graph: InfluenceGraph) -> Iterator[str]:
    """A line for each arc: the labels between two rules."""
    for source in graph.rules:
        for target in graph.rules:
            labels = graph.of(source, target)
            if labels:
                yield f"  {source} → {target}: {{{', '.join(map(str, labels))}}}"


def _rule(
    rule: RuleAnnotation, bases: Bases, expressions: Iterator[int], numbers: Iterator[int]
) -> list[str]:
    kind = "set" if rule.formulas.rule.firing is Firing.SET else "instance"
    lines = [f"{rule.name} : {kind}-oriented, changes {_changes(rule.changes)}"]
    dropped = [each for each in rule.all_changes if each not in rule.changes]
    if dropped and rule.subexpressions:
        lines.append(f"  what is stored also follows {_changes(dropped)}")
    if rule.subexpressions:
        lines.append("  Subexp :")
    tables: list[str] = []
    for each in rule.subexpressions:
        tables.append(f"T{next(numbers)}")
        made = _subexpression(each, rule, bases, f"e{next(expressions)}", tables[-1])
        lines += [f"    {line}" for line in dict.fromkeys(made)]
    lines.append("  Effect :")
    for effect in rule.effects:
        made = _effect(effect, rule, tables, bases, next(expressions))
        lines += [f"    {line}" for line in dict.fromkeys(made)]
    if rule.fires_once:
        lines.append("    computed once: the rule fires at most once")
    return lines


def _changes(changes: Sequence[Change]) -> str:
    return f"{{{', '.join(dict.fromkeys(map(str, changes)))}}}"


# --- subexpressions --------------------------------------------------------------------------


def _subexpression(
    each: Profitable, rule: RuleAnnotation, bases: Bases, name: str, table: str
) -> Iterator[str]:
    """The expression with its flags, and how each relevant change brings it up to date."""
    producer = each.producer
    joined = join_text(producer)
    changing = any(changes_of(o, rule.changes, bases) for o in producer.literals)
    kept = producer.variables if changing else producer.variables & _read(each, rule)
    columns = columns_text(producer, kept)
    inner = joined if changing else f"Π{columns}({joined})"
    flags = "".join(f" ⟕ {atom_text(o)}" for o in each.filters)
    yield f"{name} = {inner}{flags}"
    for occurrence in producer.literals:
        for change in changes_of(occurrence, rule.changes, bases):
            way = criterion(producer, occurrence, change, rule.changes)
            sign, delta = ("+" if way == 3 else "-"), delta_text(change, occurrence)
            stored = f"Π{columns} {table}" if way == 3 else table
            yield f"∂{name}{sign}/∂{change} = {stored} ⋈ {delta}"
    for occurrence in each.filters:
        for change in changes_of(occurrence, rule.changes, bases):
            flag = "true" if change.inserts else "false"
            delta = delta_text(change, occurrence)
            yield (
                f"∂{name}+/∂{change} = (Π{columns} {table} ⋈ {delta}) × "
                f"{{f_{occurrence.name}={flag}}}"
            )
            yield f"∂{name}-/∂{change} = {table} ⋈ {delta}"


def _read(each: Profitable, rule: RuleAnnotation) -> frozenset[Variable]:
    """The variables that filters, other literals and heads read."""
    inside = set(each.producer.literals)
    found: set[Variable] = set()
    for token in rule.formulas.tokens:
        for literal in token.formula.literals:
            if literal not in inside:
                found |= literal.variables
    return frozenset(found)


# --- effects ---------------------------------------------------------------------------------


def _effect(
    effect: EffectAnnotation,
    rule: RuleAnnotation,
    tables: Sequence[str],
    bases: Bases,
    number: int,
) -> Iterator[str]:
    token = effect.token
    columns = "{" + ",".join(map(str, token.head.terms)) + "}"
    used: set[Occurrence] = set()
    parts: list[str] = []
    for place in effect.reads:
        each = rule.subexpressions[place]
        used |= set(each.producer.literals)
        tests = [
            f"f_{o.name}={'false' if o.negated else 'true'}"
            for o in each.filters
            if o in token.formula.literals
        ]
        used |= {o for o in each.filters if o in token.formula.literals}
        parts.append(f"σ[{', '.join(tests)}] {tables[place]}" if tests else tables[place])
    left = [o for o in token.formula.literals if o not in used]
    body = joined_text(parts, left)
    target = f"{token.head.sign}{token.head.relation.name}"
    yield f"e{number} = OT({rule.name}, {target}) = Π{columns}({body})"
    yield from _effect_changes(effect, rule, tables, left, columns, bases, number)
    yield f"Materialize : {'true' if effect.materialise else 'false'}"


def _effect_changes(
    effect: EffectAnnotation,
    rule: RuleAnnotation,
    tables: Sequence[str],
    left: Sequence[Occurrence],
    columns: str,
    bases: Bases,
    number: int,
) -> Iterator[str]:
    if effect.once:
        yield f"∂e{number} = ∅"
        return
    for place in effect.reads:
        rest = joined_text([f"Δ+{tables[place]}"], left)
        yield f"∂e{number}+/∂{tables[place]} = Π{columns}({rest})"
        if effect.materialise:
            rest = joined_text([f"Δ-{tables[place]}"], left)
            yield f"∂e{number}-/∂{tables[place]} = Π{columns}({rest})"
    for occurrence in left:
        for change in changes_of(occurrence, rule.changes, bases):
            adds = change.inserts != occurrence.negated
            if not (adds or effect.materialise):
                continue
            others = [o for o in left if o is not occurrence]
            parts = [tables[place] for place in effect.reads] + [delta_text(change, occurrence)]
            sign = "+" if adds else "-"
            yield f"∂e{number}{sign}/∂{change} = Π{columns}({joined_text(parts, others)})"

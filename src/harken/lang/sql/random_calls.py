"""rand(), randn() and uuid(): a random value for each row.

For the engines the values are deterministic: a hash of the transaction's timestamp, the position of
the call in the text, and the row. So a row keeps its value throughout a transaction, the old state
of a view can be recomputed exactly, and SQLite and Spark agree. Duplicate rows are distinguished by
a number, except in the rounds of a recursion.

Each statement also has its own seed, the `lot`, so that the next statement of a transaction gets
other values.
"""

from __future__ import annotations

from sqlglot import exp

from harken.errors import LanguageError
from harken.ir.clauses import Atom
from harken.ir.relations import Column
from harken.ir.terms import Constant, Term, Variable
from harken.lang.sql.conversions import as_text
from harken.lang.sql.function_rewrites import fill_template
from harken.lang.sql.program_draft import Body, Draft, variables_in
from harken.lang.sql.query_rows import QueryRows
from harken.lang.sql.row_numbers import RowNumbers
from harken.lang.sql.scope import Scope
from harken.lang.sql.translation import Translation
from harken.values.types import NUMBER, TEXT

CALLS = (exp.Rand, exp.Randn, exp.Uuid)
_NORMAL = "sqrt(-2e0 * ln(1e0 - x)) * cos(2e0 * pi() * y)"


def has_random_call(node: exp.Expr) -> bool:
    """Does a query, as written, call a random function?"""
    return node.find(*CALLS) is not None


def number_random_calls(node: exp.Expr) -> exp.Expr:
    """A query whose random calls are numbered. Copies of a call keep its number."""
    if not has_random_call(node):
        return node
    made = node.copy()
    for place, call in enumerate(made.find_all(*CALLS)):
        call.set("place", str(place))
    return made


def normal_distribution(call: exp.Expr) -> exp.Expr:
    """randn(), from two uniformly distributed numbers."""
    first, second = (
        exp.Rand(this=call.this, place=f"{call.args['place']}{which}") for which in "ab"
    )
    return exp.Paren(this=fill_template(_NORMAL, first, second))


def seed_of(call: exp.Expr, draft: Draft) -> str | None:
    """The seed that a call states; it replaces timestamp and position. Two calls with the same
    seed return the same values in every transaction."""
    given = [each for each in call.args.values() if isinstance(each, exp.Expr)]
    if not given:
        return None
    number = given[0].this if isinstance(given[0], exp.Neg) else given[0]
    is_whole = isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit()
    if isinstance(call, exp.Uuid) or len(given) > 1 or not is_whole:
        raise LanguageError(
            f"{type(call).__name__.lower()}() cannot take this",
            code="unsupported",
            span=draft.place(call),
            hint="rand and randn take a whole number as seed or nothing, uuid nothing",
        )
    return given[0].sql() + str(call.args["place"]).lstrip("0123456789")


def draws_per_row(node: exp.Select) -> bool:
    """Is a random function called for the rows of this query, not of a subquery?"""
    return any(each.find_ancestor(exp.Select) is node for each in node.find_all(*CALLS))


def _is_unfinished(atom: Atom, draft: Draft) -> bool:
    known = draft.definitions.get(atom.relation.id)
    return known is not None and not known.clauses


def number_equal_rows(draft: Draft, scope: Scope, body: Body) -> Body:
    """The body over the rows of FROM, with numbers that distinguish equal rows."""
    rows = dict.fromkeys(each.term for source in scope.sources for each in source.fields)
    row = [each for each in rows if isinstance(each, Variable)]
    atoms = [each for each in body.literals if isinstance(each, Atom) and not each.negated]
    if len(atoms) == len(body.literals) and all(each.relation.is_set for each in atoms):
        return body
    if any(each.relation.in_rounds and _is_unfinished(each, draft) for each in atoms):
        return body  # a recursion treats each row of a round on its own
    columns = [Column(f"c{i}", each.type) for i, each in enumerate(row)]
    mentioned = variables_in(row, body.literals)
    captured = tuple(each for each in scope.captured if each in mentioned)
    relation = draft.define("rows", captured, columns, [(row, body.literals)], bag=True)
    numbering = RowNumbers(draft, QueryRows(relation, captured, ()), row)
    scope.apart = (numbering.number((tuple(range(len(row))), ())),)
    return Body([numbering.source()])


def random_value(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """A value from timestamp, position of the call and row; or from a seed and the row."""
    draft = translation.draft
    seed = seed_of(node, draft)
    terms = [each.term for source in scope.sources for each in source.fields]
    drawn_from = seed or f"{draft.lot} {draft.owner} {node.args['place']}"
    text: Term = Constant(drawn_from, TEXT)
    for term in dict.fromkeys([*terms, *scope.captured, *scope.apart]):
        if isinstance(term, Variable):
            shown = (
                draft.compute("object_text", (term,), TEXT, body)
                if term.type.surrogate
                else as_text(translation.draft, term, body, node)
            )
            part = draft.compute("concat", (Constant("\n", TEXT), shown), TEXT, body)
            if term.type.nullable:
                part = draft.compute("coalesce", (part, Constant("\t", TEXT)), TEXT, body)
            text = draft.compute("concat", (text, part), TEXT, body)
    name = "uuid" if isinstance(node, exp.Uuid) else "fraction" if seed else "rand"
    return draft.compute(name, (text,), TEXT if name == "uuid" else NUMBER, body)

"""rand(), randn() and uuid(): each draws a value for each row.

What is drawn is no accident to the engines. It follows from the moment of the transaction, the
place of the call in its text, and the row; so a row keeps its value throughout a transaction, the
old state of a view can be computed again as it was when it was last looked at, and SQLite and Spark
draw the same. Copies of a row are told apart by a number, except in the rounds of a recursion.

A statement draws from a lot of its own as well: the next one of a transaction gets other values.
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
    """Is anything in a query, as it was written, drawn by chance?"""
    return node.find(*CALLS) is not None


def number_random_calls(node: exp.Expr) -> exp.Expr:
    """A query in which all that is drawn has a place, which stays the same where it is copied."""
    if not has_random_call(node):
        return node
    made = node.copy()
    for place, call in enumerate(made.find_all(*CALLS)):
        call.set("place", str(place))
    return made


def normal_distribution(call: exp.Expr) -> exp.Expr:
    """A normal distribution, of two numbers that are drawn evenly."""
    first, second = (
        exp.Rand(this=call.this, place=f"{call.args['place']}{which}") for which in "ab"
    )
    return exp.Paren(this=fill_template(_NORMAL, first, second))


def seed_of(call: exp.Expr, draft: Draft) -> str | None:
    """What takes the place of the moment and of the text. Two calls with the same seed
    give the same values, in all transactions."""
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
    """Is anything drawn for the rows of this query, and not of one in it?"""
    return any(each.find_ancestor(exp.Select) is node for each in node.find_all(*CALLS))


def _is_unfinished(atom: Atom, draft: Draft) -> bool:
    known = draft.definitions.get(atom.relation.id)
    return known is not None and not known.clauses


def number_equal_rows(draft: Draft, scope: Scope, body: Body) -> Body:
    """The rows of FROM, those that are equal with a number; what follows is said of them."""
    rows = dict.fromkeys(each.term for source in scope.sources for each in source.fields)
    row = [each for each in rows if isinstance(each, Variable)]
    atoms = [each for each in body.literals if isinstance(each, Atom) and not each.negated]
    if len(atoms) == len(body.literals) and all(each.relation.is_set for each in atoms):
        return body
    if any(each.relation.in_rounds and _is_unfinished(each, draft) for each in atoms):
        return body  # of a recursion each row of a round is looked at by itself
    columns = [Column(f"c{i}", each.type) for i, each in enumerate(row)]
    mentioned = variables_in(row, body.literals)
    captured = tuple(each for each in scope.captured if each in mentioned)
    relation = draft.define("rows", captured, columns, [(row, body.literals)], bag=True)
    numbering = RowNumbers(draft, QueryRows(relation, captured, ()), row)
    scope.apart = (numbering.number((tuple(range(len(row))), ())),)
    return Body([numbering.source()])


def random_value(translation: Translation, node: exp.Expr, scope: Scope, body: Body) -> Term:
    """What the moment, the place in the text and the row say; or a seed and the row."""
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

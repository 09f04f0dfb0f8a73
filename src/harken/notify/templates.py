"""Templates: the words of messages, written by users, in Jinja2.

    CREATE TEMPLATE stock_alert (symbol TEXT, price DOUBLE)
      SUBJECT '{{ inserted | length }} stocks moved'
      TEXT '{% for row in inserted %}{{ row.symbol }} is at {{ row.price }}
    {% endfor %}'

A template may read `query`, `kind`, `at`, `execution`, `text`, `count`, the lists `inserted`,
`deleted`, `changed`, `rows` and `parts`, `left_out`, `link` and `unsubscribe`, and the columns of
the first row by their names. Its fields are the columns that rows have, with their types. It is
tried with made-up rows when it is saved, so a field that is misspelled is an error then.

It runs in a sandbox: nothing of Python can be reached, loops go over what the message says and are
two deep at most, and the result has a limit.

Law: a template that was saved renders every message whose rows have its fields.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harken.errors import HarkenError, LanguageError, NameFault, ValueFault, offered
from harken.notify.texts import Rendered, one_line
from harken.packages import needs

LONGEST_TEMPLATE = 100_000
"""Characters of one part of a template."""
LONGEST_RESULT = 1_000_000
DEEPEST_LOOP = 2
SAMPLES: Mapping[str, Any] = {
    "text": "abc",
    "integer": 3,
    "number": 2.5,
    "boolean": True,
    "date": "2026-03-01",
    "timestamp": "2026-03-01T12:00:00+00:00",
}
"""A value of each type that a field may have, as it comes in messages."""
GIVEN = ("query", "kind", "at", "execution", "text", "count", "left_out", "link", "unsubscribe")
LISTS = ("inserted", "deleted", "changed", "rows", "parts")
FILTERS = (
    *("abs", "capitalize", "count", "default", "d", "dictsort", "e", "escape", "first", "float"),
    *("int", "join", "last", "length", "list", "lower", "max", "min", "reverse"),
    *("round", "sort", "string", "sum", "title", "trim", "truncate", "unique", "upper", "tojson"),
)
PARTS = ("subject", "text", "html")
NOT_HERE = {
    "Include": "include",
    "Import": "import",
    "FromImport": "import",
    "Extends": "extends",
    "Macro": "macro",
    "CallBlock": "call",
    "Assign": "set",
    "AssignBlock": "set",
    "With": "with",
}
"""Statements of Jinja2 that only make a short template long."""


@dataclass(frozen=True, slots=True)
class Template:
    """The source of a template. `fields` are the columns of rows, with the names of their types."""

    name: str
    text: str
    subject: str = ""
    html: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def check_template(template: Template) -> None:
    """Raise if it cannot be rendered for messages with its fields."""
    for name, type_ in template.fields.items():
        if type_ not in SAMPLES:
            raise ValueFault(
                f"the field {name} of a template cannot be of type {type_}",
                code="bad-value",
                hint=offered(type_, SAMPLES, "types"),
            )
        if name in (*GIVEN, *LISTS):
            raise NameFault(
                f"a field of a template cannot be called {name}: that is what the message says",
                code="bad-value",
                hint="name the column otherwise, with AS in the query",
            )
    if not template.text.strip():
        raise ValueFault("a template without a text says nothing", code="bad-value")
    render(template, sample_context(template))


def sample_context(template: Template) -> dict[str, Any]:
    """What a message with rows of these fields says."""
    row = {name: SAMPLES[type_] for name, type_ in template.fields.items()}
    part = {"query": "sample", "inserted": [row], "deleted": [], "changed": [], "rows": []}
    return {
        **row,
        "query": "sample",
        "kind": "results",
        "at": "2026-03-01T12:00:00+00:00",
        "execution": 1,
        "text": "a sample",
        "count": 2,
        "left_out": {"inserted": 412},
        "link": "https://harken.example.org/sample",
        "unsubscribe": "https://harken.example.org/unsubscribe/sample",
        "inserted": [row, row],
        "deleted": [row],
        "changed": [{"old": row, "new": row}],
        "rows": [row],
        "parts": [part],
    }


def context_of(
    payload: Mapping[str, Any],
    *,
    query: str,
    kind: str,
    at: datetime.datetime,
    execution: int,
    link: str,
    unsubscribe: str,
) -> dict[str, Any]:
    """What a template may read of a message."""
    lists = {name: list(payload.get(name) or []) for name in LISTS}
    row = _first_row(lists)
    return {
        **row,
        "query": query,
        "kind": kind,
        "at": at.isoformat(),
        "execution": execution,
        "text": payload.get("text", ""),
        "count": payload.get("count"),
        "left_out": dict(payload.get("left_out") or {}),
        "link": link,
        "unsubscribe": unsubscribe,
        **lists,
    }


def _first_row(lists: Mapping[str, list[Any]]) -> dict[str, Any]:
    for name in ("inserted", "changed", "rows", "deleted"):
        for row in lists[name][:1]:
            found = row.get("new", row) if name == "changed" and isinstance(row, Mapping) else row
            if isinstance(found, Mapping):
                return dict(found)
    return {}


def render(template: Template, context: Mapping[str, Any]) -> Rendered:
    """The texts of a template for one message."""
    environment = _environment(as_html=False)
    subject = _rendered(template, "subject", environment, context) or f"{context['query']}"
    text = _rendered(template, "text", environment, context)
    html = _rendered(template, "html", _environment(as_html=True), context)
    return Rendered(one_line(subject), text, html)


def _rendered(template: Template, part: str, environment: Any, context: Mapping[str, Any]) -> str:
    import jinja2

    source = getattr(template, part)
    if not source:
        return ""
    if len(source) > LONGEST_TEMPLATE:
        raise ValueFault(
            f"the {part} of the template {template.name} has {len(source):,} characters, and "
            f"{LONGEST_TEMPLATE:,} are the most",
            code="bad-value",
        )
    try:
        _check_loops(environment.parse(source), template.name, part)
        pieces, size = [], 0
        for piece in environment.from_string(source).generate(context):
            pieces.append(piece)
            size += len(piece)
            if size > LONGEST_RESULT:
                raise _refused(template.name, part, "it makes more than a million characters")
        return "".join(pieces)
    except jinja2.TemplateSyntaxError as error:
        raise LanguageError(
            f"the {part} of the template {template.name} cannot be read: line {error.lineno}: "
            f"{error.message}",
            code="syntax",
        ) from error
    except jinja2.UndefinedError as error:
        raise _refused(template.name, part, str(error.message), _hint_of(template)) from error
    except HarkenError:
        raise
    except Exception as error:  # a template may do anything to values, such as add text to numbers
        raise _refused(template.name, part, f"{type(error).__name__}: {error}") from error


def _hint_of(template: Template) -> str:
    fields = ", ".join(template.fields) or "none"
    return f"its fields are {fields}; a message has {', '.join((*GIVEN, *LISTS))}"


def _refused(name: str, part: str, why: str, hint: str | None = None) -> ValueFault:
    return ValueFault(
        f"the {part} of the template {name} cannot be rendered: {why}",
        code="bad-value",
        hint=hint,
    )


def _check_loops(tree: Any, name: str, part: str) -> None:
    from jinja2 import nodes

    def deepest(node: Any, depth: int) -> int:
        depth += isinstance(node, nodes.For)
        inner = (deepest(each, depth) for each in node.iter_child_nodes())
        return max(inner, default=depth)

    if deepest(tree, 0) > DEEPEST_LOOP:
        raise _refused(name, part, f"loops may be {DEEPEST_LOOP} deep")
    for kind, word in NOT_HERE.items():
        if next(tree.find_all(getattr(nodes, kind)), None) is not None:
            raise _refused(name, part, f"it cannot use {word}: a template is one text with values")


def _environment(*, as_html: bool) -> Any:
    """The sandbox. Of a loop over text or numbers nothing long can come: there is no `range`, and
    text cannot be multiplied."""
    with needs("notify"):
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"*", "**", "%", "+"})

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            numbers = isinstance(left, int | float) and isinstance(right, int | float)
            if not numbers or operator == "**":
                raise ValueError(f"{operator} is for numbers")
            return super().call_binop(context, operator, left, right)

        def is_safe_callable(self, obj: Any) -> bool:
            return False

    made = Sandbox(autoescape=as_html, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    made.globals.clear()
    made.filters = {name: made.filters[name] for name in FILTERS}
    made.policies["json.dumps_kwargs"] = {"sort_keys": True, "default": str}
    return made

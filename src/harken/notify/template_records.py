"""Where templates are kept: the relation `message_template`, which SQL can query.

Law: what `find` returns was checked when it was saved.
"""

from __future__ import annotations

import json
import re

from harken.database.audit_log import note_change
from harken.database.runtime import Runtime
from harken.database.stored_functions import store
from harken.errors import NameFault, nearest
from harken.ir.relations import Column, Relation
from harken.ir.schema import Function, FunctionKind
from harken.notify.templates import Template, check_template
from harken.values.encoding import encode_timestamp
from harken.values.rows import Row
from harken.values.types import TEXT, TIMESTAMP

NAME = "message_template"
KEY = Column("name", TEXT)
RESULTS = (
    Column("subject", TEXT),
    Column("text", TEXT),
    Column("html", TEXT),
    Column("fields", TEXT),
    Column("saved", TIMESTAMP),
)
TEXT_OF_FUNCTION = "create function message_template(charstring name) -> templates of messages"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class TemplateRecords:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    @property
    def _is_declared(self) -> bool:
        catalog, name = self._runtime.catalog, f"{NAME}(charstring)"
        return catalog.has_function(name) and catalog.function(name).text == TEXT_OF_FUNCTION

    def save(self, template: Template, *, replace: bool = False) -> None:
        """In a transaction: keep a template that can be rendered."""
        if not _NAME.fullmatch(template.name):
            raise NameFault(
                f"a template cannot be called {template.name!r}",
                code="bad-value",
                hint="use a plain name, such as stock_alert",
            )
        check_template(template)
        self.declare()
        if not replace and self.find(template.name) is not None:
            raise NameFault(
                f"there is already a template {template.name}",
                code="exists",
                hint=f"CREATE OR REPLACE TEMPLATE {template.name}, or DROP it first",
            )
        fields = json.dumps(dict(template.fields), ensure_ascii=False)
        now = encode_timestamp(self._runtime.engine.connection.now())
        row = (
            template.name.lower(),
            template.subject,
            template.text,
            template.html,
            fields,
            now,
        )
        self._runtime.engine.set_row(self._relation(), row)
        note_change(self._runtime, "save template", template.name)

    def drop(self, name: str, *, if_exists: bool = False) -> None:
        """In a transaction: forget a template. Messages that name it get the built-in words."""
        if self.find(name) is None:
            if if_exists:
                return
            raise self.unknown(name)
        self._runtime.engine.clear(self._relation(), (name.lower(),))
        note_change(self._runtime, "drop template", name)

    def find(self, name: str) -> Template | None:
        if not self._is_declared:
            return None
        rows = self._runtime.engine.results(self._relation(), (name.lower(),))
        return _read((name.lower(), *rows[0])) if rows else None

    def all(self) -> list[Template]:
        """By name."""
        if not self._is_declared:
            return []
        return [_read(row) for row in sorted(self._runtime.engine.rows(self._relation()))]

    def check(self, name: str) -> None:
        """Raise if there is no such template."""
        if self.find(name) is None:
            raise self.unknown(name)

    def unknown(self, name: str) -> NameFault:
        known = [each.name for each in self.all()]
        close = nearest(name, known)
        hint = "CREATE TEMPLATE makes one"
        if known:
            hint = f"did you mean {close}?" if close else f"there are {', '.join(known[:20])}"
        return NameFault(f"there is no template {name}", code="unknown-table", hint=hint)

    def declare(self) -> None:
        if self._is_declared:
            return
        if self._runtime.catalog.named(NAME):
            raise NameFault(
                f"templates are kept in {NAME}, and there is another table of that name",
                code="exists",
                hint=f"rename yours first: ALTER TABLE {NAME} RENAME TO ...",
            )
        stored = FunctionKind.STORED
        function = Function(NAME, (KEY,), RESULTS, stored, text=TEXT_OF_FUNCTION)
        store(self._runtime, function, resident=True)

    def _relation(self) -> Relation:
        relation = self._runtime.catalog.function(f"{NAME}(charstring)").relation
        assert relation is not None
        return relation


def _read(row: Row) -> Template:
    name, subject, text, html, fields, _ = row
    return Template(name, text, subject, html, json.loads(fields))

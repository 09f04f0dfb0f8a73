"""SET name = value, SHOW name and SHOW SETTINGS: the settings of the session, see
`harken.settings`."""

from __future__ import annotations

from sqlglot import exp

from harken.database.runtime import Runtime
from harken.errors import HarkenError
from harken.lang.sql.parser import Statement
from harken.settings import SETTINGS, unknown_setting
from harken.values.types import TEXT

OTHERS = ("TABLES", "VIEWS")


def is_setting(node: exp.Expr) -> bool:
    return isinstance(node, exp.Show) and node.name not in OTHERS


def set_value(runtime: Runtime, statement: Statement) -> None:
    node = statement.node
    try:
        if node.expression.name.upper() == "DEFAULT" and not node.expression.is_string:
            runtime.settings.reset(node.name)
        else:
            runtime.settings.set(node.name, node.expression.name)
    except HarkenError as error:
        error.span = statement.span
        raise


def show_settings(runtime: Runtime, node: exp.Expr) -> None:
    wanted = [each for each in SETTINGS if node.name in ("SETTINGS", each.name)]
    if not wanted:
        raise unknown_setting(node.name)
    rows = [
        (each.name, _shown(runtime.settings[each.name]), each.unit, each.about) for each in wanted
    ]
    runtime.emit("rows", ("name", "value", "unit", "about"), rows, (TEXT,) * 4)


def _shown(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case tuple():
            return ", ".join(value)
    return str(value)

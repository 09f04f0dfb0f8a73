"""The words for what is wrong with a statement, where several places need the same ones."""

from __future__ import annotations

from collections.abc import Iterable

from harken.errors import NameFault, SafetyFault, Span, nearest
from harken.ir.types import Type
from harken.lang.amosql import syntax


def unknown_rule(name: str, known: Iterable[str], span: Span | None) -> NameFault:
    meant = nearest(name, known)
    return NameFault(
        f"there is no rule {name}",
        code="unknown-rule",
        span=span,
        hint=f"did you mean {meant}?" if meant else "create it first with `create rule`",
    )


def no_local(name: str, span: Span | None) -> NameFault:
    return NameFault(
        f"there is no local variable {name}",
        code="unknown-variable",
        span=span,
        hint=f"declare it in the procedure, `declare integer {name};`, or write :{name}",
    )


def outside(node: syntax.Node) -> SafetyFault:
    return SafetyFault(
        f"{spoken(node)} belongs in a procedure",
        code="side-effect",
        span=node.span,
        hint="write it between `begin` and `end` of a `create function`",
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    return f"1 {one} is" if number == 1 else f"{number} {many or one + 's'} are"


def how_to_convert(wanted: Type) -> str:
    if wanted.surrogate:
        return f"`add {wanted} to :x` makes an object one of that type"
    converters = {"charstring": "to_string", "integer": "to_integer", "number": "to_number"}
    converter = converters.get(wanted.name)
    return f"{converter}(...) converts" if converter else f"give a value of type {wanted}"


def spoken(node: syntax.Node) -> str:
    words = {
        syntax.CreateType: "`create type`",
        syntax.DeleteType: "`delete type`",
        syntax.CreateFunction: "`create function`",
        syntax.DeleteFunction: "`delete function`",
        syntax.Commit: "`commit`",
        syntax.DeclareLocals: "`declare`",
        syntax.Return: "`return`",
    }
    return words.get(type(node), type(node).__name__)

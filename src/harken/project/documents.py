"""YAML with positions: every value knows where it is, so that an error can point to it.

Scalars mean what they mean in JSON and YAML 1.2: `no` and `12:30` are texts, and `1.50` is exact. A
duplicate key is an error.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import yaml

from harken.errors import Span, nearest
from harken.project.project_fault import ProjectFault

_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    word: value
    for value, words in ((True, "true True TRUE"), (False, "false False FALSE"))
    for word in words.split()
}
_PLAIN = "tag:yaml.org,2002:str"


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Keeps every plain scalar as text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own)


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document, and its position."""

    source: str
    text: str
    node: Any

    @property
    def span(self) -> Span:
        start = self.node.start_mark.index
        return Span(start, max(self.node.end_mark.index, start + 1))

    def wrong(self, message: str, hint: str | None = None) -> NoReturn:
        fault = ProjectFault(message, span=self.span, hint=hint)
        raise fault.locate(self.text, self.source)

    @property
    def is_list(self) -> bool:
        return isinstance(self.node, yaml.SequenceNode)

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.node, yaml.MappingNode)

    def items(self, what: str) -> list[Node]:
        if not self.is_list:
            self.wrong(f"{what} is a list", "begin each line of it with a dash")
        return [self._at(each) for each in self.node.value]

    def entries(self, what: str) -> dict[str, Node]:
        if not self.is_mapping:
            self.wrong(f"{what} has names with values", "write `name: value`")
        found: dict[str, Node] = {}
        for key, value in self.node.value:
            at = self._at(key)
            name = at.scalar("a name")
            if str(name) in found:
                at.wrong(f"{name} stands there twice")
            found[str(name)] = self._at(value)
        return found

    def known(self, what: str, names: Iterable[str]) -> dict[str, Node]:
        """The entries, whose keys must all be among these."""
        found, names = self.entries(what), list(names)
        for (key, _), name in zip(self.node.value, found, strict=True):
            if name not in names:
                near = nearest(name, names)
                hint = f"did you mean {near}?" if near else f"there are {', '.join(names)}"
                self._at(key).wrong(f"{what} has no {name}", hint)
        return found

    def scalar(self, what: str) -> Any:
        """A text, whole number, exact number, boolean or None."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.wrong(f"{what} is one value", "put it in one line, or in quotes")
        text = str(self.node.value)
        if self.node.style is not None or self.node.tag != _PLAIN:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        return decimal.Decimal(text) if _NUMBER.fullmatch(text) else text

    def words(self, what: str) -> str:
        """A text, whatever it looks like."""
        if not isinstance(self.node, yaml.ScalarNode) or not self.node.value:
            self.wrong(f"{what} is a text")
        return str(self.node.value)

    def _at(self, node: Any) -> Node:
        return Node(self.source, self.text, node)


def read_documents(text: str, source: str) -> Iterator[Node]:
    """The documents of a text, without empty ones."""
    try:
        for node in yaml.compose_all(text, Loader=_Loader):
            if node is not None and node.value != "":
                yield Node(source, text, node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = mark.index if mark is not None else 0
        message = f"this is no YAML: {error.problem or error.context or 'it cannot be read'}"
        fault = ProjectFault(message, span=Span(at, at + 1))
        raise fault.locate(text, source) from None
    except yaml.YAMLError as error:
        raise ProjectFault(f"this is no YAML: {error}").locate(text, source) from None

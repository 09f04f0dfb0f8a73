"""Environment variables in the files of a project: `${NAME}`, or `${NAME:-otherwise}`.

`$${NAME}` stands for `${NAME}` itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harken.errors import Span, nearest
from harken.project.project_fault import ProjectFault

_MENTION = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


def with_variables(text: str, source: str, environment: Mapping[str, str]) -> str:
    """The text with the values of the variables that it mentions.

    >>> with_variables("${HOME}/${X:-b} $${Y}", "a.sql", {"HOME": "/h"})
    '/h/b ${Y}'
    """

    def value(found: re.Match[str]) -> str:
        escaped, name, otherwise = found.groups()
        if escaped:
            return found[0][1:]
        if name in environment:
            return environment[name]
        if otherwise is not None:
            return str(otherwise)
        near = nearest(name, environment)
        fault = ProjectFault(
            f"the environment variable {name} is not set",
            span=Span(*found.span()),
            hint=f"did you mean {near}?" if near else f"set it, or write ${{{name}:-otherwise}}",
        )
        raise fault.locate(text, source)

    return _MENTION.sub(value, text)

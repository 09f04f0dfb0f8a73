"""The options of a source, as its kind wants them: checked, converted, secrets resolved.

Besides its own, a kind's sources have the options `take`, `suspect_share` and `retain`.

Law: an error names the option and never a secret's value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harken.database.secrets import has_password, is_reference
from harken.errors import SourceFault, offered
from harken.sources.option_values import option_value
from harken.sources.outside import Option, OutsideKind

SHARED = (
    Option("take", "The columns to keep; all of them by default.", "names"),
    Option(
        "suspect_share",
        "The share of the rows that may vanish at once before the reading is doubted; with 1 none "
        "is.",
        "number",
        0.5,
        least=0,
        most=1,
    ),
    Option(
        "retain",
        "How long changes are kept for consumers that have not seen them.",
        "duration",
        7 * 86_400.0,
        least=0,
    ),
)


def retained(given: Mapping[str, Any]) -> float:
    """How long changes of a source are kept for who has not seen them, in seconds."""
    option = next(each for each in SHARED if each.name == "retain")
    return float(option_value(option, given.get("retain"), lambda text: text, "source"))


def checked(
    kind: OutsideKind, given: Mapping[str, Any], resolve: Callable[[str], str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the kind with their defaults, and the shared ones."""
    known = {option.name: option for option in (*kind.options, *SHARED)}
    for name in given:
        if name not in known:
            raise SourceFault(
                f"the kind {kind.name} has no option {name}",
                code="bad-option",
                hint=offered(name, known, "options"),
            )
    found = {
        name: option_value(option, given.get(name), resolve, kind.name)
        for name, option in known.items()
    }
    shared = {option.name for option in SHARED}
    own = {name: value for name, value in found.items() if name not in shared}
    return own, {name: found[name] for name in shared}


def refuse_passwords(kind: OutsideKind, given: Mapping[str, Any]) -> None:
    """Definitions are stored and shown: a secret in one must be a reference."""
    secret = {option.name for option in kind.options if option.secret}
    for name, value in given.items():
        texts = value if isinstance(value, list | tuple) else [value]
        for each in texts:
            if not isinstance(each, str) or is_reference(each):
                continue
            if name in secret or has_password(each):
                raise SourceFault(
                    f"the option {name} holds a secret, which the database would show",
                    code="bad-option",
                    hint=f"write {name} 'secret:a_name', and set HARKEN_SECRET_A_NAME in the "
                    "environment",
                )

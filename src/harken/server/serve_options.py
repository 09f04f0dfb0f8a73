"""The options of `harken serve`, in one table: from flags, the environment, or a file of settings.

    # harken.toml
    host = "0.0.0.0"
    behind_proxy = true
    [settings]
    statement_timeout = 10

Law: a flag counts before the environment, the environment before the file, and the file before the
default. An unknown name, or a value that does not fit, is an error that says where it stands.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harken.consumers.monitors.log import Keep
from harken.errors import StorageError, ValueFault, offered
from harken.setting import PREFIX, Setting
from harken.settings import SETTINGS, Settings

API, WORKER = "api", "worker"
FORMATS, LEVELS = ("text", "json"), ("debug", "info", "warning", "error")
OPTIONS: tuple[Setting, ...] = (
    Setting("behind_proxy", False, "A proxy in front encrypts the connections."),
    Setting("host", "127.0.0.1", "The address to listen on."),
    Setting(
        "keep_bytes", Keep().bytes, "How many bytes of changes are kept for each view.", least=1
    ),
    Setting(
        "keep_seconds",
        Keep().seconds,
        "How long changes are kept for clients that are away.",
        "seconds",
        least=0.001,
    ),
    Setting("log_format", "text", "How lines of the log are written: text or json."),
    Setting("log_level", "warning", "What is logged: debug, info, warning or error."),
    Setting("only", "", "api: answer requests; worker: do what is due; both if it is left out."),
    Setting("port", 8765, "The port to listen on; 0 picks a free one.", most=65_535),
    Setting("tls_cert", "", "A certificate, as PEM."),
    Setting("tls_key", "", "Its key, as PEM."),
    Setting("token", "", "The token that clients must send."),
)
"""Sorted by name. `allowed` below has the words that some of them take."""
ALLOWED = {"only": ("", API, WORKER), "log_format": FORMATS, "log_level": LEVELS}


@dataclass(frozen=True, slots=True)
class ServeOptions:
    values: Mapping[str, Any]
    settings: Settings
    given: frozenset[str]
    """The options that were given anywhere."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def token(self) -> str | None:
        return str(self.values["token"]) if "token" in self.given else None

    @property
    def keep(self) -> Keep:
        return Keep(self.values["keep_seconds"], self.values["keep_bytes"])


def serve_options(
    flags: Mapping[str, Any],
    overrides: Mapping[str, str],
    file: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> ServeOptions:
    """`flags` are the options that were given, None for the others; `overrides` are `--set`."""
    written = {} if file is None else _read(file)
    settings = written.pop("settings", {})
    if not isinstance(settings, dict):
        raise _wrong(file, "settings is a table: [settings]", None)
    known = {each.name: each for each in OPTIONS}
    for name in written:
        if name not in known:
            hint = offered(name, [*known, "settings"], "options")
            if name in {each.name for each in SETTINGS}:
                hint = f"{name} is a setting: write it below [settings]"
            raise _wrong(file, f"there is no option {name}", hint)
    values, given = {}, set[str]()
    for name, option in known.items():
        for place in (flags, _of_environment(option, environment), written):
            if place.get(name) is not None:
                values[name] = _checked(option, place[name])
                given.add(name)
                break
        else:
            values[name] = option.default
    return ServeOptions(values, _settings(settings, overrides, environment), frozenset(given))


def _of_environment(option: Setting, environment: Mapping[str, str]) -> Mapping[str, str]:
    variable = option.variable
    return {option.name: environment[variable]} if variable in environment else {}


def _settings(
    written: Mapping[str, Any], overrides: Mapping[str, str], environment: Mapping[str, str]
) -> Settings:
    """Those of the file count where neither a flag nor the environment gives one."""
    kept = {
        name: value for name, value in written.items() if PREFIX + name.upper() not in environment
    }
    return Settings({**kept, **overrides}, serving=True)


def _checked(option: Setting, value: Any) -> Any:
    found = option.read(value)
    words = ALLOWED.get(option.name)
    if words is not None and found not in words:
        raise ValueFault(
            f"{option.name} cannot be {found}",
            code="bad-value",
            hint=f"use {' or '.join(each for each in words if each)}",
        )
    return found


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise StorageError(
            f"{file} cannot be read: {error.strerror or error}", code="cannot-read"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = 'write NAME = VALUE, and texts in "..."'
        raise _wrong(file, f"this is no TOML: {error}", hint) from error


def _wrong(file: str | None, message: str, hint: str | None) -> ValueFault:
    return ValueFault(f"{file}: {message}", code="bad-value", hint=hint)

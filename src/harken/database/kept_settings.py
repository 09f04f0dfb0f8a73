"""Settings that are kept in the database file: the mail server, and which addresses are allowed.

Every process that opens the file uses them, where neither an option nor the environment gives
others. Law: only settings that say `kept` are there, and no secret: a password is the name of one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from harken.database.secrets import is_reference
from harken.engines.protocol import Field, RecordKind, Records
from harken.errors import ValueFault, offered
from harken.setting import Setting
from harken.settings import SETTINGS

KEPT = RecordKind("harken_settings", (Field("name", "text"), Field("value", "text")), key=("name",))
CAN_BE_KEPT: Mapping[str, Setting] = {each.name: each for each in SETTINGS if each.kept}


class KeptSettings:
    def __init__(self, records: Records) -> None:
        self._records = records

    def all(self) -> dict[str, Any]:
        """Those that this version knows, and whose values it accepts."""
        if not self._records.exist(KEPT):
            return {}
        found = {}
        for name, text in self._records.find(KEPT):
            try:
                found[name] = CAN_BE_KEPT[name].read(json.loads(text))
            except (KeyError, ValueError, ValueFault):
                continue
        return found

    def put(self, name: str, value: Any) -> None:
        """In a transaction. None forgets it."""
        setting = checked(name)
        self._records.make_room(KEPT)
        if value is None:
            self._records.remove(KEPT, {"name": name})
            return
        read = setting.read(value)
        if name.endswith("_password") and read and not is_reference(read):
            raise ValueFault(
                f"the setting {name} must name a secret", code="bad-value", hint="as secret:mail"
            )
        self._records.add(KEPT, (name, json.dumps(read)), replace=True)


def checked(name: str) -> Setting:
    if name not in CAN_BE_KEPT:
        raise ValueFault(
            f"the setting {name} is not kept in the database",
            code="bad-value",
            hint=offered(name, CAN_BE_KEPT, "settings that are"),
        )
    return CAN_BE_KEPT[name]

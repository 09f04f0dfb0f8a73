"""Harken watches data and acts on change.

Law: `import harken` loads the errors and nothing else. Every other public name is loaded from its
module when it is first used, so a program that only mentions Harken starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harken.errors import (
    ArithmeticFault,
    ClockWarning,
    EngineError,
    EvaluationError,
    ForeignFault,
    HarkenError,
    IntegrityError,
    LakeWarning,
    LanguageError,
    NameFault,
    SafetyFault,
    StorageError,
    SyntaxFault,
    TypeFault,
    ValueFault,
)

if TYPE_CHECKING:
    from harken import dbapi as dbapi
    from harken.api.backups import Restored, restore
    from harken.api.connect import connect
    from harken.api.continual_handles import ContinualQuery
    from harken.api.database import Database
    from harken.api.handles import FunctionHandle, NoValue
    from harken.backup.saving import Backup
    from harken.backup.verification import Verification
    from harken.client.client import Client
    from harken.client.view_copies import Copy
    from harken.consumers.monitors.log import Keep
    from harken.consumers.monitors.subscription import Subscription
    from harken.consumers.rules.detached import DetachedAction
    from harken.database.changes import Change
    from harken.database.objects import Object
    from harken.database.results import Result, Results
    from harken.engines.packaged_java import java_home
    from harken.notify.channel_registry import NotDelivered
    from harken.notify.user_channels import OutgoingMessage, channel
    from harken.sources.spark_data_source import register_data_sources
    from harken.sources.user_kinds import source_kind

__all__ = [
    "ArithmeticFault",
    "Backup",
    "Change",
    "Client",
    "ClockWarning",
    "ContinualQuery",
    "Copy",
    "Database",
    "DetachedAction",
    "EngineError",
    "EvaluationError",
    "ForeignFault",
    "FunctionHandle",
    "HarkenError",
    "IntegrityError",
    "Keep",
    "LakeWarning",
    "LanguageError",
    "NameFault",
    "NoValue",
    "NotDelivered",
    "Object",
    "OutgoingMessage",
    "Restored",
    "Result",
    "Results",
    "SafetyFault",
    "StorageError",
    "Subscription",
    "SyntaxFault",
    "TypeFault",
    "ValueFault",
    "Verification",
    "channel",
    "connect",
    "java_home",
    "register_data_sources",
    "restore",
    "source_kind",
]

__version__ = "0.1.0"

_MODULES = {
    "Backup": "harken.backup.saving",
    "Restored": "harken.api.backups",
    "Verification": "harken.backup.verification",
    "restore": "harken.api.backups",
    "register_data_sources": "harken.sources.spark_data_source",
    "source_kind": "harken.sources.user_kinds",
    "Change": "harken.database.changes",
    "ContinualQuery": "harken.api.continual_handles",
    "Client": "harken.client.client",
    "Copy": "harken.client.view_copies",
    "Database": "harken.api.database",
    "DetachedAction": "harken.consumers.rules.detached",
    "FunctionHandle": "harken.api.handles",
    "Keep": "harken.consumers.monitors.log",
    "NoValue": "harken.api.handles",
    "NotDelivered": "harken.notify.channel_registry",
    "Object": "harken.database.objects",
    "OutgoingMessage": "harken.notify.user_channels",
    "Result": "harken.database.results",
    "Results": "harken.database.results",
    "Subscription": "harken.consumers.monitors.subscription",
    "channel": "harken.notify.user_channels",
    "connect": "harken.api.connect",
    "java_home": "harken.engines.packaged_java",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module at first use."""
    if name == "dbapi":
        return import_module("harken.dbapi")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

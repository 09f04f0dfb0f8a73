"""Harken watches data and acts on change."""

from typing import TYPE_CHECKING, Any

from harken.api.connect import connect
from harken.api.database import Database
from harken.api.handles import FunctionHandle, NoValue
from harken.consumers.monitors.log import Keep
from harken.consumers.monitors.subscription import Subscription
from harken.consumers.rules.detached import DetachedAction
from harken.database.changes import Change
from harken.database.objects import Object
from harken.database.results import Result, Results
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
    from harken.client.client import Client
    from harken.client.copies import Copy

__all__ = [
    "ArithmeticFault",
    "Change",
    "Client",
    "ClockWarning",
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
    "Object",
    "Result",
    "Results",
    "SafetyFault",
    "StorageError",
    "Subscription",
    "SyntaxFault",
    "TypeFault",
    "ValueFault",
    "connect",
]

__version__ = "0.1.0"

_LATER = {"Client": "harken.client.client", "Copy": "harken.client.copies"}


def __getattr__(name: str) -> Any:
    """What only clients of the service need is loaded when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)

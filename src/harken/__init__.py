"""Harken watches data and acts on change."""

from typing import TYPE_CHECKING, Any

from harken.database.database import Database, connect
from harken.database.handles import FunctionHandle, NoValue
from harken.database.monitors.changes import Change
from harken.database.monitors.log import Keep
from harken.database.monitors.subscription import Subscription
from harken.database.objects import Object
from harken.database.results import Result, Results
from harken.database.rules.detached import DetachedAction
from harken.errors import (
    ArithmeticFault,
    EngineError,
    EvaluationError,
    ForeignFault,
    HarkenError,
    IntegrityError,
    LanguageError,
    NameFault,
    SafetyFault,
    StorageError,
    SyntaxFault,
    TypeFault,
    ValueFault,
)

if TYPE_CHECKING:
    from harken.server.client import Client
    from harken.server.copies import Copy

__all__ = [
    "ArithmeticFault",
    "Change",
    "Client",
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

_LATER = {"Client": "harken.server.client", "Copy": "harken.server.copies"}


def __getattr__(name: str) -> Any:
    """What only clients of the service need is loaded when it is asked for."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)

"""Harken watches data and acts on change."""

from harken.database.database import Database, connect
from harken.database.handles import FunctionHandle, NoValue
from harken.database.monitors.changes import Change
from harken.database.monitors.log import Keep
from harken.database.monitors.subscription import Subscription
from harken.database.objects import Object
from harken.database.results import Result, Results
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

__all__ = [
    "ArithmeticFault",
    "Change",
    "Database",
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

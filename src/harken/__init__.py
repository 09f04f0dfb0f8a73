"""Harken watches data and acts on change."""

from harken.database.database import Database, connect
from harken.database.handles import FunctionHandle, NoValue
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
    "Database",
    "EngineError",
    "EvaluationError",
    "ForeignFault",
    "FunctionHandle",
    "HarkenError",
    "IntegrityError",
    "LanguageError",
    "NameFault",
    "NoValue",
    "Object",
    "Result",
    "Results",
    "SafetyFault",
    "StorageError",
    "SyntaxFault",
    "TypeFault",
    "ValueFault",
    "connect",
]

__version__ = "0.1.0"

"""What the rest of Harken asks of an engine.

An engine stores relations, changes them inside transactions, evaluates plans, captures changes and
keeps derived state. It never parses a user's text and never decides what to compute; it only knows
how. Each protocol has one purpose and says the law that it keeps; `Engine` is all of them. Rows are
tuples of stored values (`values.encoding`), relations are those of the IR. Everything above the
engines imports them from here.
"""

from harken.engines.protocol.capture import (
    Capture,
    CapturedDelta,
    Delta,
    Histories,
    LargeChange,
)
from harken.engines.protocol.database_copies import CopiedTable, DatabaseCopies
from harken.engines.protocol.engine import Engine, Indexes, Statistics
from harken.engines.protocol.file_records import COUNTERS, Field, RecordKind, Records
from harken.engines.protocol.file_transactions import (
    Connection,
    Limits,
    SchemaVersions,
    TransactionEnd,
    Transactions,
)
from harken.engines.protocol.keep import (
    AnyKept,
    CopiedRows,
    Keep,
    Kept,
    KeptCopy,
    KeptCounts,
    KeptRecursion,
    KeptRounds,
    KeptSummary,
    MemberChanges,
    RecursionChange,
    RecursionSource,
    RecursiveRows,
    RoundsChange,
    RoundsSource,
    Size,
    Specification,
)
from harken.engines.protocol.lake_access import Fetch, Lake, LakeRelation
from harken.engines.protocol.prepared_queries import (
    NO_ANSWERS,
    Answers,
    BrokenOff,
    Evaluate,
    Query,
    RunWith,
    TooManyRows,
)
from harken.engines.protocol.store import DirectAccess, Found, Numbers, Store, damaged
from harken.engines.protocol.waves import (
    Apply,
    Clear,
    CompiledWave,
    Fill,
    Follow,
    Read,
    WaveChanges,
    Waves,
    WaveStep,
)
from harken.values.rows import Row

__all__ = [
    "COUNTERS",
    "NO_ANSWERS",
    "Answers",
    "AnyKept",
    "Apply",
    "BrokenOff",
    "Capture",
    "CapturedDelta",
    "Clear",
    "CompiledWave",
    "Connection",
    "CopiedRows",
    "CopiedTable",
    "DatabaseCopies",
    "Delta",
    "DirectAccess",
    "Engine",
    "Evaluate",
    "Fetch",
    "Field",
    "Fill",
    "Follow",
    "Found",
    "Histories",
    "Indexes",
    "Keep",
    "Kept",
    "KeptCopy",
    "KeptCounts",
    "KeptRecursion",
    "KeptRounds",
    "KeptSummary",
    "Lake",
    "LakeRelation",
    "LargeChange",
    "Limits",
    "MemberChanges",
    "Numbers",
    "Query",
    "Read",
    "RecordKind",
    "Records",
    "RecursionChange",
    "RecursionSource",
    "RecursiveRows",
    "RoundsChange",
    "RoundsSource",
    "Row",
    "RunWith",
    "SchemaVersions",
    "Size",
    "Specification",
    "Statistics",
    "Store",
    "TooManyRows",
    "TransactionEnd",
    "Transactions",
    "WaveChanges",
    "WaveStep",
    "Waves",
    "damaged",
]

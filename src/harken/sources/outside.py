"""What Harken asks of a kind of outside source: a database, a page, a feed, a file.

A kind is one module with four things: its options, and, once opened, a schema, a snapshot as Arrow
batches, and its changes since a position. There are two ways to learn what changed:

- A `Polled` source is read again. Harken compares the snapshot with its mirror, by key where there
  is one, so such a kind never computes a difference itself.
- A `Followed` server tells its transactions in order, each with the position after it. Several
  sources of one server share it, so that a transaction there stays whole here.

Values in batches and rows are what `pyarrow` gives as Python values. A position is a text that only
the kind understands; Harken stores it in the same transaction as the rows it stands for.

Every source also has the options `take` (the columns to keep), `suspect_share` and `retain`, and a
kind has none of these names. An open source is used by one thread at a time, not always the same.

Law: snapshot + the transactions after its position = a later snapshot; and reading twice from the
same position gives the same transactions, until `release` was called with a later one.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa

Position = str
"""How far a source was read. Compared only by its kind."""
UNCHANGED: Any = object()
"""In a row of `plus` of a table with a key: this column keeps the value that the mirror has."""
OptionType = Literal["text", "integer", "number", "flag", "duration", "names", "choice"]
"""`names` is a list, in text separated by commas; `duration` is in seconds, in text as an interval
of SQL."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a kind. A `secret` one is never shown; any text option may be `secret:name`."""

    name: str
    about: str
    type: OptionType = "text"
    default: Any = None
    required: bool = False
    secret: bool = False
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class OutsideSchema:
    """The columns of a source. `key` identifies a row if the source itself says so; a bag has
    none."""

    columns: pa.Schema
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All rows at one moment. The batches are read once; whoever stops early calls their
    `close`. `position` is where the changes after this moment begin."""

    schema: OutsideSchema
    batches: Iterator[pa.RecordBatch]
    position: Position | None = None
    expected_rows: int | None = None
    """For a progress bar, if it is known before reading."""
    at: datetime.datetime | None = None
    """When the data last changed, if the source says so."""
    set_aside: Mapping[str, str] = field(default_factory=dict)
    """The parts that could not be read, and why, complete when the batches have been read. Their
    rows of last time stay."""
    part_column: str | None = None
    """The column that names the part of a row, with the names that `set_aside` has. Without it
    nobody knows whose rows are missing, so none is deleted while a part is set aside."""


@dataclass(frozen=True, slots=True)
class TableChange:
    """What one transaction did to one table: rows that went and rows that came, with the columns
    of the schema in their order.

    With a key the change is net: at most one row of `plus` for each key, which takes the place of
    the row that has the key, and of a row of `minus` only the key counts, the other columns may be
    None. Without a key each row counts as often as it is listed, net or not. A `truncated` table
    lost all its rows before `plus` was inserted.
    """

    table: str
    minus: Sequence[tuple[Any, ...]] = ()
    plus: Sequence[tuple[Any, ...]] = ()
    truncated: bool = False
    moved: Mapping[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)
    """Of a row of `plus` that has `UNCHANGED` values and another key than before: its key, and the
    key under which the mirror has those values, as it was before this transaction."""


@dataclass(frozen=True, slots=True)
class OutsideTransaction:
    """One transaction of a server, whole, as far as it concerns the tables that are followed.
    `altered` names tables whose columns changed in it, with a sentence for the user; their rows
    cannot be taken in until someone has decided. One without changes tells how far the log was
    read, so that the server may forget what concerns nobody here."""

    position: Position
    changes: tuple[TableChange, ...]
    at: datetime.datetime | None = None
    altered: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What a kind may use besides its options."""

    now: Callable[[], datetime.datetime]
    name: str
    """The name of the source, for names of objects in the server."""
    database: str = ""
    """A text that identifies this database file, for the same purpose."""
    allow_private_addresses: bool = False
    allowed_roots: tuple[str, ...] | None = None
    """Directories that files may be read from; None allows all."""
    agent: str = "Harken"
    redacted: Callable[[str], str] = str
    """A text without the secrets that were read, for rows and messages that name an address."""
    known: OutsideSchema | None = None
    """The columns of the mirror, if there is one. A kind that infers types keeps to these, so that
    a column of whole numbers does not change its type with the first fraction: a value that does
    not fit is `source-changed`."""


class Polled(Protocol):
    """An open source that is read again at each poll."""

    def schema(self) -> OutsideSchema:
        """The columns as they are now, from a sample or the source's own catalog."""

    def snapshot(self, since: Position | None = None) -> Snapshot | None:
        """All rows now; None if nothing changed since that position (an ETag, a `data_version`,
        a cheap query), which should cost next to nothing."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """What a query wants of one column. `values` has one value, any number for `in`, none for
    `is null` and `is not null`; texts compare by their code points."""

    column: str
    operator: Literal["=", "<>", "<", "<=", ">", ">=", "in", "is null", "is not null"]
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Order:
    """One column of an order. Texts are ordered by their code points, and NULL is less or greater
    than all values."""

    column: str
    descending: bool = False
    nulls_first: bool = True


def until_unique(order: Sequence[Order], key: Sequence[str]) -> tuple[Order, ...]:
    """The part of an order that decides: after the columns of a key there are no ties.

    >>> [each.column for each in until_unique([Order("a"), Order("id"), Order("b")], ["id"])]
    ['a', 'id']
    """
    open_parts = set(key)
    for number, each in enumerate(order, 1):
        open_parts.discard(each.column)
        if key and not open_parts:
            return tuple(order[:number])
    return tuple(order)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a source for one query. Law: the answer has every row that satisfies the
    `pushed` conditions, in the columns that were asked for; it may have others, so the caller
    tests each row again. If it is `limited`, it has the first of these rows, in the order that was
    asked for, until the limit."""

    text: str
    """What the source is asked, for EXPLAIN."""
    pushed: tuple[Condition, ...]
    limited: bool
    batches: Callable[[], Iterator[pa.RecordBatch]]


@runtime_checkable
class Answering(Protocol):
    """A polled source that also answers a part of a query, so that less travels."""

    def question(
        self,
        columns: Sequence[str],
        conditions: Sequence[Condition],
        limit: int | None = None,
        order: Sequence[Order] = (),
    ) -> Question:
        """What would be asked; nothing is read before `batches` is called. `limit` is how many
        rows are needed, the first ones in this order, if all conditions are decided there; a source
        that orders in another way leaves it out."""


class Followed(Protocol):
    """An open server whose log of changes is read. Tables are added and removed as sources are."""

    def schema(self, table: str) -> OutsideSchema: ...

    def expect(self, table: str, columns: Sequence[str]) -> None:
        """The columns of the mirror, in their order, the key's among them. From now on rows of this
        table come in these; without this call, in all columns of the snapshot that `start` gave.
        A column that is missing there makes the table `altered`, a new one does not."""

    def start(self, tables: Sequence[str]) -> Mapping[str, Snapshot]:
        """Begin to follow more tables; their rows at one moment, each with the position from which
        their changes count. A crash between this and the commit of the snapshot must be safe to
        repeat."""

    def stop(self, table: str) -> None:
        """Stop following a table and remove what was installed for it. The last one removes
        everything."""

    def transactions(
        self, positions: Mapping[str, Position], limit: int = 10_000
    ) -> Iterator[OutsideTransaction]:
        """The transactions after the position of each table, in commit order, until about `limit`
        rows. A table's changes up to its own position are left out: it may be ahead of the others,
        as its snapshot is when it is new. The position of a table moves on with the transactions
        that have a `TableChange` of it, also an empty one, by which a quiet table keeps up with
        the log. Nothing is released."""

    def release(self, position: Position) -> None:
        """All transactions up to this one are committed in Harken: the server may forget them.
        Called for transactions in their order, not for each."""

    def lag(self, position: Position) -> float | None:
        """How much the server has to tell beyond this position, in bytes, if known."""

    def close(self) -> None: ...


@runtime_checkable
class Offering(Protocol):
    """A followed server that knows of new columns."""

    def offered(self, table: str) -> Sequence[str]:
        """The columns there that are not among the expected ones, as of the last reading."""


@dataclass(frozen=True, slots=True)
class Opened:
    """What a kind opens. `server` is equal for sources that share a connection and a log (None: it
    stands alone); it holds no secret. `table` is the source's name there. Of the sources of one
    server that are followed, the first one's `followed` serves all, and the others' are closed, so
    opening should connect lazily. `capture` names the way that was chosen, and `why` says why in a
    sentence."""

    polled: Polled | None = None
    followed: Followed | None = None
    server: str | None = None
    table: str = ""
    capture: str = "poll"
    why: str = ""
    scripts: Callable[[], tuple[str, str]] | None = None
    """The scripts that create and drop there what this way of capture needs, for an operator to
    read or to run (`harken source add --sql`)."""


class OutsideKind(Protocol):
    """One kind of outside source."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str:
        """The name of the kind for people."""

    @property
    def options(self) -> tuple[Option, ...]: ...

    @property
    def captures(self) -> tuple[str, ...]:
        """The ways of capture, the best first. Pages and files have only `poll`. A kind whose
        snapshots are whole or an error, as those of a database are, has an attribute
        `is_whole = True`: if its rows vanish, that is no reason to doubt them."""

    def open(
        self, options: Mapping[str, Any], context: Context, capture: str | None = None
    ) -> Opened:
        """Connect. Options are validated and secrets resolved; `capture` None takes the best way
        that the source permits. Asking for a schema or a sample installs nothing."""

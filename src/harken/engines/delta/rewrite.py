"""Which files a change rewrites, and into what.

    rows(files − removed + added) = rows(files) − Δ− + Δ+

A removed row is taken from the files that hold it. An added row goes where its key lives already,
else into the file that its key falls into, else behind the last file that begins before it; a full
file that it would only lengthen is left alone and a new one begun. In a set no row is added twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from harken.engines.delta import weighted
from harken.engines.delta.data_files import Written
from harken.engines.delta.snapshot import LakeFile, Snapshot, orderable
from harken.errors import IntegrityError

WORKERS = 2
MOST_FILES_IN_MEMORY = 64
NOWHERE = -1


@dataclass(frozen=True)
class Layout:
    """The facts about a table that a rewrite needs."""

    snapshot: Snapshot
    key: tuple[str, ...]
    rows_per_file: int
    bag: bool
    read: Callable[[str], pa.Table]
    write: Callable[[pa.Table], Written]


@dataclass(frozen=True)
class Rewritten:
    added: list[Written] = field(default_factory=list)
    removed: list[LakeFile] = field(default_factory=list)


def apply(layout: Layout, delta: pa.Table) -> Rewritten:
    """Write the files that the net change `delta` produces; the old files stay untouched."""
    if not delta.num_rows:
        return Rewritten()
    delta = _sorted(delta, layout.key)
    near = _Near(layout, delta)
    near.check(layout.bag)
    places = _places(layout, near)
    taken = near.file[near.taken]
    changed = sorted({*taken.tolist(), *places[places >= 0].tolist()})
    begun = sorted({*places[places < NOWHERE].tolist()})
    with ThreadPoolExecutor(WORKERS) as pool:
        rewritten = pool.map(
            lambda index: _write(layout, _rewrite(near, index, places == index)), changed
        )
        fresh = pool.map(lambda place: _write(layout, near.copies(places == place)), begun)
        files = [file for part in (*rewritten, *fresh) for file in part]
    return Rewritten(files, [layout.snapshot.files[index] for index in changed])


def fill(layout: Layout, rows: pa.Table) -> Rewritten:
    """Write the first rows of an empty table."""
    rows = _sorted(rows, layout.key)
    if not layout.bag:
        rows = rows.filter(pa.array(~_repeats(rows, layout.key)))
    return Rewritten(_write(layout, rows))


def _repeats(rows: pa.Table, key: Sequence[str]) -> Any:
    """Which of the sorted rows equal an earlier one; only rows with the same key can."""
    found = np.zeros(rows.num_rows, bool)
    near = np.flatnonzero(_as_before(rows.select(key)))
    if len(near):
        concerned = np.unique(np.concatenate([near, near + 1]))
        (numbers,) = weighted.row_numbers(rows.take(pa.array(concerned)))
        _, first = np.unique(numbers, return_index=True)
        again = np.ones(len(concerned), bool)
        again[first] = False
        found[concerned[again]] = True
    return found


def _as_before(rows: pa.Table) -> Any:
    """For each row but the first: is it equal to the one before it?"""
    same = np.ones(max(0, rows.num_rows - 1), bool)
    for column in rows.columns:
        this, last = column.slice(1), column.slice(0, max(0, rows.num_rows - 1))
        equal = pc.fill_null(pc.equal(this, last), False)
        both_null = pc.and_(pc.is_null(this), pc.is_null(last))
        same &= pc.or_(equal, both_null).to_numpy()
    return same


def compact(layout: Layout) -> Rewritten:
    """Merge runs of neighbouring files that are small or whose keys overlap."""
    result = Rewritten()
    for run in _runs(layout):
        files = [layout.snapshot.files[index] for index in run]
        rows = pa.concat_tables([layout.read(file.path) for file in files])
        result.added.extend(_write(layout, rows))
        result.removed.extend(files)
    return result


def positions_in_order(rows: pa.Table, keys: pa.Table) -> pa.Array:
    """`positions_of` for rows sorted by the first key column: a binary search instead of a scan."""
    first, *others = keys.column_names
    column = rows[first]
    if not pa.types.is_integer(column.type) or column.null_count or keys[first].null_count:
        return positions_of(rows, keys)
    wanted = np.unique(keys[first].to_numpy())
    numbers = column.to_numpy()
    starts = np.searchsorted(numbers, wanted, "left")
    counts = np.searchsorted(numbers, wanted, "right") - starts
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    places = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    if not others or not total:
        return pa.array(places)
    near = rows.select(keys.column_names).take(pa.array(places))
    found, asked = weighted.row_numbers(near, keys)
    return pa.array(places[np.isin(found, asked)])


def positions_of(rows: pa.Table, keys: pa.Table) -> pa.Array:
    """The positions of the rows whose key is among `keys`, for keys of any columns."""
    first, *others = keys.column_names
    positions = pc.indices_nonzero(pc.is_in(rows[first], value_set=_whole(keys[first])))
    if not others or not len(positions):
        return positions
    near = rows.select(keys.column_names).take(positions)
    found, wanted = weighted.row_numbers(near, keys)
    return positions.filter(pa.array(np.isin(found, wanted)))


class _Near:
    """The rows of the table whose key occurs in the change.

    Each has its `file` and `position` there, and the numbers of its `row` and `key`, which the
    rows of the change share if they are equal. `taken` are those that the change removes.
    """

    def __init__(self, layout: Layout, delta: pa.Table) -> None:
        self.delta = delta
        self.weights = weighted.weights_of(delta)
        self.candidates = layout.snapshot.candidates(delta.select(layout.key))
        self._layout = layout
        self._rows: dict[int, pa.Table] = {}
        indices = [index for index, places in enumerate(self.candidates) if len(places)]
        self._keep = len(indices) <= MOST_FILES_IN_MEMORY
        with ThreadPoolExecutor(WORKERS) as pool:
            hits = list(pool.map(self._find, indices))
        self._number(indices, hits)
        self._take()

    def rows(self, index: int) -> pa.Table:
        rows = self._rows.get(index)
        if rows is None:
            rows = self._layout.read(self._layout.snapshot.files[index].path)
            if self._keep:
                self._rows[index] = rows
        return rows

    def copies(self, chosen: Any) -> pa.Table:
        """The chosen rows of the change, each as often as it is added."""
        return weighted.plus_rows(self.delta.filter(pa.array(chosen)))

    def check(self, bag: bool) -> None:
        missing = np.flatnonzero(self._held[self.delta_row] < -self.weights)
        if len(missing):
            raise self._complaint(missing[0], "is not there to be removed", "no-such-row")
        # Only added rows matter: rows that stay were there, and removed rows are no copies.
        copies = self.weights + self._held[self.delta_row]
        doubled = np.flatnonzero((self.weights > 0) & (copies > 1))
        if len(doubled) and not bag:
            raise self._complaint(doubled[0], "is there already", "row-exists")

    def _find(self, index: int) -> tuple[Any, pa.Table]:
        keys = self.delta.select(self._layout.key).take(pa.array(self.candidates[index]))
        rows = self.rows(index)
        positions = positions_of(rows, keys)
        return positions.to_numpy().astype(np.int64), rows.take(positions)

    def _number(self, indices: list[int], hits: list[tuple[Any, pa.Table]]) -> None:
        changed = self.delta.select(weighted.columns_of(self.delta))
        rows = pa.concat_tables([changed.slice(0, 0), *(rows for _, rows in hits)])
        counts = [len(positions) for positions, _ in hits]
        self.file = np.repeat(np.array(indices, np.int64), counts)
        self.position = np.concatenate([np.empty(0, np.int64), *(where for where, _ in hits)])
        if not len(self.file):  # as in a bulk load, where numbering would take longest
            self.row = self.key = self.file
            self.delta_row = self.delta_key = np.arange(changed.num_rows)
            return
        self.row, self.delta_row = weighted.row_numbers(rows, changed)
        key = self._layout.key
        self.key, self.delta_key = weighted.row_numbers(rows.select(key), changed.select(key))

    def _take(self) -> None:
        """Of equal rows the first ones are removed, as many as the change says."""
        size = max(self.row.max(initial=-1), self.delta_row.max(initial=-1)) + 1
        needed = np.zeros(size, np.int64)
        needed[self.delta_row] = np.maximum(-self.weights, 0)
        order = np.argsort(self.row, kind="stable")
        rows = self.row[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
        self.taken = order[rank < needed[rows]]
        self._held = np.bincount(self.row, minlength=size)

    def _complaint(self, index: int, what: str, code: str) -> IntegrityError:
        row = self.delta.select(weighted.columns_of(self.delta)).slice(index, 1).to_pylist()[0]
        shown = ", ".join(f"{name}={value!r}" for name, value in row.items())
        return IntegrityError(f"the row ({shown}) {what}", code=code)


def _places(layout: Layout, near: _Near) -> Any:
    """The destination of each added row: a file's index, or a new file `_behind` it."""
    homes = np.full(max(near.key.max(initial=-1), near.delta_key.max()) + 1, NOWHERE, np.int64)
    homes[near.key] = near.file
    places = homes[near.delta_key]
    places = np.where(places == NOWHERE, _neighbours(layout, near), places)
    return np.where(near.weights > 0, places, NOWHERE)


def _behind(index: int) -> int:
    return NOWHERE - 1 - index


def _neighbours(layout: Layout, near: _Near) -> Any:
    """For each row of the change, the last file that begins before its key."""
    snapshot = layout.snapshot
    places = np.full(len(near.weights), _behind(0), np.int64)
    keys = _Keys(near.delta.select(layout.key))
    end = len(keys)
    for index in reversed(snapshot.sequence(layout.key)):
        start = bisect_left(keys, snapshot.lowest(index, layout.key), 0, end)
        full = snapshot.files[index].rows >= layout.rows_per_file
        places[start:end] = _behind(index) if full else index
        inside = near.candidates[index]
        places[inside[(inside >= start) & (inside < end)]] = index
        end = start
        first = index
    if snapshot.files:
        places[:end] = first
    return places


class _Keys:
    """Sorted keys as tuples that compare as Arrow sorts them."""

    def __init__(self, keys: pa.Table) -> None:
        self._columns = [_whole(column) for column in keys.columns]

    def __len__(self) -> int:
        return len(self._columns[0])

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(orderable(column[index].as_py()) for column in self._columns)


def _rewrite(near: _Near, index: int, added: Any) -> pa.Table:
    rows = near.rows(index)
    kept = np.ones(rows.num_rows, bool)
    taken = near.taken[near.file[near.taken] == index]
    kept[near.position[taken]] = False
    return pa.concat_tables([rows.filter(pa.array(kept)), near.copies(added)])


def _write(layout: Layout, rows: pa.Table) -> list[Written]:
    """In the order of the key, in files of equal size."""
    if not rows.num_rows:
        return []
    rows = _sorted(rows, layout.key)
    ends = np.linspace(0, rows.num_rows, -(-rows.num_rows // layout.rows_per_file) + 1).astype(int)
    with ThreadPoolExecutor(WORKERS) as pool:
        slices = [rows.slice(a, b - a) for a, b in pairwise(ends.tolist())]
        return list(pool.map(layout.write, slices))


def _runs(layout: Layout) -> list[list[int]]:
    """Neighbours in the order of their keys that overlap, or of which one is small."""
    snapshot, bounds = layout.snapshot, layout.snapshot.bounds(layout.key[0])
    runs: list[list[int]] = []
    highest: Any = None
    small_before = False
    for index in snapshot.sequence(layout.key):
        mine = bounds[index]
        small = snapshot.files[index].rows < layout.rows_per_file // 2
        overlaps = highest is not None and mine.known and mine.lowest < highest
        joins = overlaps or (small and small_before)
        if joins and len(runs[-1]) < MOST_FILES_IN_MEMORY:
            runs[-1].append(index)
        else:
            runs.append([index])
        if mine.known and (highest is None or mine.highest > highest):
            highest = mine.highest
        small_before = small
    return [run for run in runs if len(run) > 1]


def _sorted(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    columns = [rows[name] for name in key]
    if all(pa.types.is_integer(c.type) and not c.null_count for c in columns) and _in_order(
        [column.to_numpy() for column in columns]
    ):
        return rows
    return rows.sort_by([(name, "ascending") for name in key])


def _in_order(columns: list[Any]) -> bool:
    """Are rows of numbers, column by column, already sorted? Checking is faster than sorting."""
    undecided = np.ones(max(0, len(columns[0]) - 1), bool)
    for column in columns:
        if (undecided & (column[1:] < column[:-1])).any():
            return False
        undecided &= column[1:] == column[:-1]
    return True


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks or [pa.array([], column.type)])

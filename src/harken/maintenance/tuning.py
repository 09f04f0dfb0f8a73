"""The numbers that the choice of a strategy depends on: all of them, in one place.

Every other module of `maintenance/` reads its numbers from here. A docstring says what the number
is. `TUNING`, at the end, lists each number with its unit and the evidence for it: the benchmark it
was set with, the ADR that gives its reason, or `unmeasured` where neither is on record.

Law: no number here changes an answer, only the time and space that finding it takes.
"""

from __future__ import annotations

from typing import NamedTuple

# --- magnitudes ------------------------------------------------------------------------------

DOUBLED = 2.0
"""A decision is reviewed when a quantity that it depends on has grown by this factor: sizes of
relations, numbers of changes, seconds spent, stored measurements. An interrupted run is assumed to
take this many times as long as it ran, and the first run of rows from the lake this many times as
long as the next. A statement that is this many times as long as recomputing is not used. Strategies
whose times differ by less are close, so that the measurement of either decays."""
SEVERAL_TIMES = 4.0
"""A clear difference. Recomputing is tried once for each kind of change that is not this many times
as fast by another strategy. A screener is chosen again when transactions change this many times
more or fewer rows than when it was chosen. Recomputing by Spark, which cannot be interrupted, is
timed when differentials have taken one part in this many of its first evaluation."""
MANY_TIMES = 20.0
"""A strategy runs away when it takes this many times as long as the best other one. The first
evaluation of a view includes planning and cold indexes, so recomputing is timed once more when
differentials have taken more than one part in this many of it."""
FEW = 3
"""Few runs: the mean of this many is a measurement, and up to this many may mislead. A strategy
that was interrupted this often, and never finished, is not tried for such a change before the sizes
have doubled. A strategy of short runs is tried for this many changes in a row, of which only the
last is recorded. A wave is compiled after this many interpreted ones. Plans for fewer changed
relations are made at once, because the number of combinations doubles with each relation."""
MANY_RUNS = 16
"""Many runs: a strategy is settled when it was chosen for this many changes in a row, and then this
many follow it before one is chosen for and timed. Counting ends when differentials would have been
faster for this many. The strategies of a recursion are compared by the mean of this many, because
an edge at the root of a tree takes a thousand times as long as one at a leaf."""
SHORT_RUN = 0.002
"""Runs of fewer seconds are neither recorded, unless there is a measurement to compare with, nor
interrupted, and they seem slow when SQLite has to prepare their statements again. Storing rows or
counting derivations is not tried before changes have taken this long without."""
FIRST_RUN = 0.25
"""A first run, with the planning in it, is slow when it takes more seconds than this. Rederivation
is interrupted then, before the first measurement of recomputing. A run that was interrupted later
is recorded even if it includes planning."""

# --- what counts as a small or a large change ------------------------------------------------

SMALL_CHANGE = 100
"""Changes of fewer rows are followed by differentials, without an estimate or a timer."""
SMALL_SHARE = 0.02
"""The cost model is not used either when no relation changed by a larger share of its rows, because
its estimates for joins of many relations can be wrong by any factor. Trying a slower strategy again
may take this share of the time."""
BULK_SHARE = 0.3
"""A change of a larger share of a relation's rows, gains and losses together, is a bulk change. The
views above are recomputed, unless measurements say otherwise."""
ESTIMATED_CHANGE = 1_000.0
"""The cost model estimates differentials for one changed row and for this many. The difference is
the cost per row."""
SECONDS_PER_ROW = 1e-6
"""Assumed cost of recomputing, and of storing what is derived, in seconds per stored row, before
the first measurement."""
LARGE_LAKE_CHANGE = 20_000
"""When more rows of lake relations changed, Spark evaluates either strategy, and the cost model for
SQLite does not apply: changed rows are compared with stored rows instead."""
LAKE_CHANGE_ROW_COST = 0.65
"""The cost of following one changed row with Spark, as a multiple of the cost of recomputing from
one stored row."""
LEAST_GROUP_MEMBERS = 5.0
"""Totals are kept when a group has at least this many members on average, or when a join produces
them: without totals, the join runs once to find the changed groups, and again in both states to
find their members."""

# --- planning --------------------------------------------------------------------------------

PLANNING_SECONDS_PER_SQUARED_LITERAL = 5e-6
"""The cost of planning a statement, in seconds, is this times the square of its literals."""
SHORT_PLANNING = 0.1
"""Plans that take fewer seconds to make are made at once."""

# --- measurements ----------------------------------------------------------------------------

TIME_LIMIT_FACTOR = 1.25
"""Differentials are interrupted when they have taken this many times as long as recomputing. It is
more than 1 because an interrupted run does not tell how long it would have taken. In the lake,
where nothing is interrupted, differentials that were not measured are tried unless they are thought
to take this many times as long."""
DECAY = 0.97
"""The measurement of the strategy that was not chosen is multiplied by this after each wave, so
that a wrong measurement is corrected one day."""
UNTIMED_WAVES = 500
"""When differentials were clearly faster, this many waves from the same relations, if no larger,
are not timed, unless one takes longer than recomputing. After this many runs of a compiled wave,
some are interpreted, so that decisions are reviewed."""

# --- trying what may be faster ---------------------------------------------------------------

INVESTMENT = 0.1
"""The rows of a recursion are stored, or derivations are counted, when that takes no more than this
share of what changes took without. A strategy with few measurements may be tried for this share of
the time."""
COUNTING_OVERHEAD = 0.0002
"""Counting takes about this many seconds for any change, of which the timer does not see half:
faster differentials are no reason to count."""


def first_run_limit(reads_lake: bool) -> float:
    """The time limit before anything was measured, in seconds; longer where recomputing is left to
    Spark, or fetches whole relations from the lake."""
    return FIRST_RUN * (MANY_TIMES if reads_lake else 1.0)


class Constant(NamedTuple):
    name: str
    unit: str
    evidence: str
    """The benchmark it was set with (`harken bench NAME`), the ADR that gives its reason, or
    `unmeasured`."""

    @property
    def value(self) -> float:
        found: float = globals()[self.name]
        return found


TUNING = (
    Constant("DOUBLED", "factor", "one for all that doubles: eight constants before"),
    Constant("SEVERAL_TIMES", "factor", "ADR 14, script/tuning: 16 costs 1%, 1 up to 14% in one"),
    Constant("MANY_TIMES", "factor", "issue 24: at most 20 times the best"),
    Constant("FEW", "runs", "script/tuning: 12 costs 2% in one scenario, 1 up to 20%"),
    Constant("MANY_RUNS", "runs", "bench closure, ADR 17; script/tuning: 8 costs 2% in one"),
    Constant("SHORT_RUN", "seconds", "script/tuning: 16 ms cost 14%"),
    Constant("FIRST_RUN", "seconds", "unmeasured"),
    Constant("SMALL_CHANGE", "rows", "script/tuning: 400 cost 8% over groups"),
    Constant("SMALL_SHARE", "share", "ADR 17; script/tuning: 0.08 cost up to 5% in one"),
    Constant("BULK_SHARE", "share of a relation", "bench sql-sweep"),
    Constant("ESTIMATED_CHANGE", "rows", "unmeasured"),
    Constant("SECONDS_PER_ROW", "seconds", "script/tuning: 4 µs cost 12%"),
    Constant("LARGE_LAKE_CHANGE", "rows", "unmeasured"),
    Constant("LAKE_CHANGE_ROW_COST", "factor", "bench lake: equal at 3/4 of the rows"),
    Constant("LEAST_GROUP_MEMBERS", "rows", "unmeasured"),
    Constant("PLANNING_SECONDS_PER_SQUARED_LITERAL", "seconds", "ADR 14"),
    Constant("SHORT_PLANNING", "seconds", "unmeasured"),
    Constant("TIME_LIMIT_FACTOR", "factor", "ADR 14"),
    Constant("DECAY", "factor per wave", "ADR 14"),
    Constant(
        "UNTIMED_WAVES", "waves", "bench waves; ADR 14: timing took a third of a small change"
    ),
    Constant("INVESTMENT", "share", "bench closure; script/tuning: 0.025 costs 22%"),
    Constant("COUNTING_OVERHEAD", "seconds", "bench counting"),
)

"""The numbers that the choice of a strategy depends on: all of them, in one place.

Every other module of `maintenance/` reads its numbers from here. A docstring says what the number
is. `TUNING`, at the end, lists each number with its unit and the evidence for it: the benchmark it
was set with, the ADR that gives its reason, or `unmeasured` where neither is on record.

Law: no number here changes an answer, only the time and space that finding it takes.
"""

from __future__ import annotations

from typing import NamedTuple

# --- what counts as a small or a large change ------------------------------------------------

SMALL_CHANGE = 100
"""Changes of fewer rows are followed by differentials, without an estimate or a timer."""
SMALL_SHARE = 0.01
"""The cost model is not used either when no relation changed by a larger share of its rows, because
its estimates for joins of many relations can be wrong by any factor."""
BULK_SHARE = 0.3
"""A change of a larger share of a relation's rows, gains and losses together, is a bulk change. The
views above are recomputed, unless measurements say otherwise."""
ESTIMATED_CHANGE = 1_000.0
"""The cost model estimates differentials for one changed row and for this many. The difference is
the cost per row."""
DOUBLED = 2.0
"""A decision is reviewed when a quantity that it depends on has grown by this factor: sizes of
relations, numbers of changes, seconds spent, stored measurements. An interrupted run is assumed to
take this many times as long as it ran, and a statement that is this many times as long as
recomputing is not used."""
RECOMPUTE_SECONDS_PER_ROW = 2e-6
"""Assumed cost of recomputing, in seconds per stored row, before the first measurement."""

# --- the lake --------------------------------------------------------------------------------

LARGE_LAKE_CHANGE = 20_000
"""When more rows of lake relations changed, Spark evaluates either strategy, and the cost model for
SQLite does not apply: changed rows are compared with stored rows instead."""
LAKE_CHANGE_ROW_COST = 0.65
"""The cost of following one changed row with Spark, as a multiple of the cost of recomputing from
one stored row."""
MOST_LAKE_GROUPS = 500_000
"""Totals over lake relations are kept for at most this many groups, since SQLite stores them."""

# --- kept totals and copies ------------------------------------------------------------------

LEAST_GROUP_MEMBERS = 5.0
"""Totals are kept when a group has at least this many members on average."""
JOINED_MEMBER_WEIGHT = 5.0
"""A member that a join produces counts as this many. Without totals, the join runs once to find the
changed groups, and again in both states to find their members."""
REBUILT_TOTALS_COST = 3.0
"""The cost of not following kept totals, in recomputations: the totals are built again, and the
node that reads them is recomputed twice."""

# --- screeners -------------------------------------------------------------------------------

SCREENER_DRIFT = 4.0
"""A screener is chosen again when transactions change this many times more or fewer rows of its
relation than when it was chosen."""

# --- planning --------------------------------------------------------------------------------

MANY_CHANGED_RELATIONS = 3
"""A plan for this many changed relations or more is made only when it pays, since the number of
combinations doubles with each relation. Plans for fewer are made at once."""
PLANNING_SECONDS_PER_SQUARED_LITERAL = 5e-6
"""The cost of planning a statement, in seconds, is this times the square of its literals."""
SHORT_PLANNING = 0.1
"""Plans that take fewer seconds to make are made at once."""
LONGEST_PLANNING = 0.5
"""No plan takes SQLite more seconds than this. A run that was interrupted later is recorded even
if it includes planning."""

# --- measurements ----------------------------------------------------------------------------

SHORTEST_RECORDED_RUN = 0.001
"""Runs of fewer seconds are recorded only if there is a measurement to compare them with."""
MEMORY = 2
"""A measurement is the mean of this many changes of its size."""
TIME_LIMIT_FACTOR = 1.25
"""Differentials are interrupted when they have taken this many times as long as recomputing. It is
more than 1 because an interrupted run does not tell how long it would have taken."""
SAMPLE_FACTOR = 20.0
"""The first evaluation of a view includes planning and cold indexes, so it is no good measurement
of recomputing. Recomputing is timed once more when differentials have taken more than one part in
this many of it."""
LAKE_SAMPLE_FACTOR = 4.0
"""The same where Spark evaluates the view, which cannot be interrupted; there the time of all
differentials since the first evaluation counts."""
DECAY = 0.97
"""The measurement of the strategy that was not chosen is multiplied by this after each wave, so
that a wrong measurement is corrected one day."""
CLOSE_RATIO = 0.5
"""The measurement of recomputing decays only while differentials take a larger share of it."""
FIRST_FETCH_DISCOUNT = 0.5
"""A first run that fetched rows from the lake counts for this share of its time: the next may find
the rows in the cache."""
LAKE_GUESS_DISCOUNT = 0.67
"""In the lake, a guess between or beyond measurements counts for this share, so that a close one is
tried."""
GROWTH = 0.5
"""Beyond the largest measured change, the time is assumed to grow by this share of the growth seen
between the two largest."""
LAKE_GROWTH = 1.0
"""The same in the lake, where a guess that is too low cannot be interrupted."""
UNTIMED_WAVES = 50
"""When differentials were clearly faster, this many waves from the same relations, if no larger,
are not timed."""

# --- compiled waves --------------------------------------------------------------------------

COMPILED_AFTER = 3
"""A wave is compiled when this many waves of the same relations have been interpreted."""
COMPILED_AGAIN_FACTOR = 4
"""When that was not possible, or the guards did not hold, it takes this many times as many waves
until it is tried again."""
RUNS_OF_COMPILED = 500
"""After this many runs of a compiled wave, some are interpreted, so that decisions
are reviewed."""
MOST_COMPILED = 64
"""Sets of changed relations for which a wave is compiled."""
MOST_COMPILED_NODES = 400
"""A compiled wave has at most this many nodes."""

# --- recursive views and counted derivations -------------------------------------------------

FIRST_INVESTMENT = 0.004
"""Storing rows or counting derivations is not tried before changes have taken this many seconds
without."""
BUILD_SECONDS_PER_ROW = 1e-6
"""Assumed cost of building, in seconds per stored row below, before the first attempt."""
COUNTING_INVESTMENT = 0.25
"""Derivations are counted when that takes no more than this share of what differentials took."""
COUNTING_OVERHEAD = 0.0002
"""Counting takes about this many seconds for any change: faster differentials are no reason to
count."""
UNTIMED_COUNTING_OVERHEAD = 0.0001
"""The seconds of that overhead that the timer does not see."""
COUNTING_PATIENCE = 8
"""Counting ends after this many changes in a row that differentials would have found sooner."""
RECURSION_INVESTMENT = 0.1
"""The rows of a recursion are stored when that takes no more than this share of what changes took
without."""
LONG_MEMORY = 32
"""The strategies of a recursion, counting and differentials are compared by the mean of this many
changes: an edge at the root of a tree takes a thousand times as long as one at a leaf."""
FIRST_REDERIVATION_LIMIT = 0.25
"""Rederivation is interrupted after this many seconds, before the first measurement of
recomputing."""
FIRST_LAKE_REDERIVATION_LIMIT = 5.0
"""The same where recomputing is left to Spark, or fetches whole relations from the lake."""
RUNAWAY_FACTOR = 20.0
"""A requested strategy is interrupted when it has taken this many times as long as the best
other strategy is known to take, or as the first limit of rederivation."""
MOST_ATTEMPTS = 2
"""A strategy that was interrupted this often, and never finished, is not tried for such a change
again before the sizes of the relations have doubled."""
SHORTEST_LIMIT = 0.002
"""Rederivation is never interrupted earlier than after this many seconds."""
RECOMPUTE_TRIAL_FACTOR = 4.0
"""Recomputing is tried once for each kind of change, if it took no more than this many times as
long as the fastest other strategy."""
EXPLORATION_SHARE = 0.02
"""The share of the time that may go into trying a slower strategy again."""
NEW_EXPLORATION_SHARE = 0.1
"""The same for a strategy with few measurements."""
FEW_RUNS = 3
"""Up to this many runs are few."""
COLD_STATEMENT_SECONDS = 0.005
"""Runs of fewer seconds seem slow when SQLite has to prepare their statements again, after they
dropped out of its cache."""
TRIAL_CHANGES = 4
"""So such a strategy is tried for this many changes in a row,"""
WARM_TRIAL_CHANGES = 2
"""and only the last ones of them, this many, are recorded."""
SETTLED_AFTER = 16
"""A strategy is settled when it was chosen for this many changes in a row."""
UNTIMED_CHANGES = 7
"""Between two changes that are chosen for and timed, this many follow the settled strategy."""


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
    Constant("SMALL_CHANGE", "rows", "unmeasured"),
    Constant("SMALL_SHARE", "share of a relation", "unmeasured"),
    Constant("BULK_SHARE", "share of a relation", "bench sql-sweep"),
    Constant("ESTIMATED_CHANGE", "rows", "unmeasured"),
    Constant("DOUBLED", "factor", "one for all that doubles: six constants before"),
    Constant("RECOMPUTE_SECONDS_PER_ROW", "seconds", "unmeasured"),
    Constant("LARGE_LAKE_CHANGE", "rows", "unmeasured"),
    Constant("LAKE_CHANGE_ROW_COST", "factor", "bench lake: equal at 3/4 of the rows"),
    Constant("MOST_LAKE_GROUPS", "rows", "unmeasured"),
    Constant("LEAST_GROUP_MEMBERS", "rows", "unmeasured"),
    Constant("JOINED_MEMBER_WEIGHT", "factor", "bench sql-sweep"),
    Constant("REBUILT_TOTALS_COST", "recomputations", "ADR 14"),
    Constant("SCREENER_DRIFT", "factor", "unmeasured"),
    Constant("MANY_CHANGED_RELATIONS", "relations", "ADR 14"),
    Constant("PLANNING_SECONDS_PER_SQUARED_LITERAL", "seconds", "ADR 14"),
    Constant("SHORT_PLANNING", "seconds", "unmeasured"),
    Constant("LONGEST_PLANNING", "seconds", "unmeasured"),
    Constant("SHORTEST_RECORDED_RUN", "seconds", "unmeasured"),
    Constant("MEMORY", "runs", "unmeasured"),
    Constant("TIME_LIMIT_FACTOR", "factor", "ADR 14"),
    Constant("SAMPLE_FACTOR", "factor", "unmeasured"),
    Constant("LAKE_SAMPLE_FACTOR", "factor", "ADR 14"),
    Constant("DECAY", "factor per wave", "ADR 14"),
    Constant("CLOSE_RATIO", "factor", "unmeasured"),
    Constant("FIRST_FETCH_DISCOUNT", "factor", "ADR 14"),
    Constant("LAKE_GUESS_DISCOUNT", "factor", "ADR 14"),
    Constant("GROWTH", "factor", "unmeasured"),
    Constant("LAKE_GROWTH", "factor", "ADR 14: q21 of TPC-H, 173 s or 39 s"),
    Constant("UNTIMED_WAVES", "waves", "ADR 14: timing took a third of a small change"),
    Constant("COMPILED_AFTER", "waves", "unmeasured"),
    Constant("COMPILED_AGAIN_FACTOR", "factor", "unmeasured"),
    Constant("RUNS_OF_COMPILED", "waves", "bench waves"),
    Constant("MOST_COMPILED", "sets of relations", "unmeasured"),
    Constant("MOST_COMPILED_NODES", "nodes", "unmeasured"),
    Constant("FIRST_INVESTMENT", "seconds", "unmeasured"),
    Constant("BUILD_SECONDS_PER_ROW", "seconds", "unmeasured"),
    Constant("COUNTING_INVESTMENT", "share", "unmeasured"),
    Constant("COUNTING_OVERHEAD", "seconds", "unmeasured"),
    Constant("UNTIMED_COUNTING_OVERHEAD", "seconds", "unmeasured"),
    Constant("COUNTING_PATIENCE", "changes", "unmeasured"),
    Constant("RECURSION_INVESTMENT", "share", "bench closure"),
    Constant("LONG_MEMORY", "runs", "bench closure, ADR 17"),
    Constant("FIRST_REDERIVATION_LIMIT", "seconds", "unmeasured"),
    Constant("FIRST_LAKE_REDERIVATION_LIMIT", "seconds", "unmeasured"),
    Constant("RUNAWAY_FACTOR", "factor", "issue 24: at most 20 times the best"),
    Constant("MOST_ATTEMPTS", "runs", "unmeasured"),
    Constant("SHORTEST_LIMIT", "seconds", "unmeasured"),
    Constant("RECOMPUTE_TRIAL_FACTOR", "factor", "unmeasured"),
    Constant("EXPLORATION_SHARE", "share", "ADR 17"),
    Constant("NEW_EXPLORATION_SHARE", "share", "without it rows that became useful are used later"),
    Constant("FEW_RUNS", "runs", "unmeasured"),
    Constant("COLD_STATEMENT_SECONDS", "seconds", "ADR 17"),
    Constant("TRIAL_CHANGES", "changes", "ADR 17: cold statements took three times as long"),
    Constant("WARM_TRIAL_CHANGES", "changes", "ADR 17"),
    Constant("SETTLED_AFTER", "changes", "bench closure"),
    Constant("UNTIMED_CHANGES", "changes", "ADR 17: choosing was a fifth of 0.5 ms"),
)

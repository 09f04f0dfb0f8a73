"""How the four transactions of a continual query go together (thesis, 4.2.1).

The transactions are (1) the one that triggers, (2) the detection of its event, (3) the evaluation
of the condition and (4) the execution of the query. Between two neighbours a coupling says whether
they are the same transaction, whether the first waits for the second, whether the second needs the
commit of the first, and when it starts. Here `immediate` and `deferred` are the words of the
thesis: after the commit and before the commit. (Rules use the same words for something else: after
the statement and before the commit.)

Two presets have plain names: `IN TRANSACTION` (same, synchronous, deferred) and `AFTER COMMIT`
(separate, asynchronous, causally dependent, immediate), which is the default. The thesis gives a
default for (3)-(4) that breaks its own rules: a dependency is only said between transactions that
are asynchronous.

Law: a coupling that exists keeps the rules of section 4.2.1.
"""

from __future__ import annotations

from dataclasses import dataclass

from harken.continual.words import Reader
from harken.errors import Span, TypeFault

PAIRS = ((1, 2), (2, 3), (3, 4))
NAMES = {
    "TRIGGERING": 1,
    "UPDATE": 1,
    "DETECTION": 2,
    "DETECTING": 2,
    "EVENT": 2,
    "EVALUATION": 3,
    "CONDITION": 3,
    "TRIGGER": 3,
    "EXECUTION": 4,
    "QUERY": 4,
}
"""What the transactions may be called, besides their numbers."""
FIELDS = {
    "TRANSACTIONCOUPLING": ("SAME", "SEPARATE"),
    "EXECUTIONCOUPLING": ("SYNCHRONOUS", "ASYNCHRONOUS"),
    "DEPENDENCYCOUPLING": ("DEPENDENT", "INDEPENDENT"),
    "SCHEDULECOUPLING": ("IMMEDIATE", "DEFERRED"),
}


@dataclass(frozen=True, slots=True)
class Coupling:
    """Between two transactions. `dependent` is None where nothing can depend on a commit."""

    same: bool = False
    synchronous: bool = False
    dependent: bool | None = True
    deferred: bool = False

    def __post_init__(self) -> None:
        if self.deferred and not self.same:
            raise _broken("deferred means before the commit, so it needs the same transaction")
        if self.same and not self.synchronous:
            raise _broken("the same transaction waits for its parts, so it is synchronous")
        if self.dependent is not None and (self.same or self.synchronous or self.deferred):
            raise _broken(
                "a causal dependency is only said where the transactions are separate, "
                "asynchronous and immediate"
            )

    def __str__(self) -> str:
        said = ["SAME" if self.same else "SEPARATE"]
        said.append("SYNCHRONOUS" if self.synchronous else "ASYNCHRONOUS")
        if self.dependent is not None:
            said.append(f"CAUSALLY {'DEPENDENT' if self.dependent else 'INDEPENDENT'}")
        said.append("DEFERRED" if self.deferred else "IMMEDIATE")
        return " ".join(said)


AFTER_COMMIT = Coupling()
IN_TRANSACTION = Coupling(same=True, synchronous=True, dependent=None, deferred=True)
DEFAULTS = {(1, 2): Coupling(dependent=False), (2, 3): AFTER_COMMIT, (3, 4): AFTER_COMMIT}


@dataclass(frozen=True, slots=True)
class Couplings:
    """The couplings that differ from the defaults."""

    given: tuple[tuple[tuple[int, int], Coupling], ...] = ()

    def between(self, first: int, second: int) -> Coupling:
        pair = (first, second)
        return dict(self.given).get(pair, DEFAULTS[pair])

    def with_one(self, pair: tuple[int, int], coupling: Coupling) -> Couplings:
        found = dict(self.given) | {pair: coupling}
        kept = {
            each: found[each] for each in PAIRS if found.get(each, DEFAULTS[each]) != DEFAULTS[each]
        }
        return Couplings(tuple(kept.items()))

    def __str__(self) -> str:
        if not self.given:
            return "AFTER COMMIT"
        if self == WITH_TRANSACTION:
            return "IN TRANSACTION"
        return ", ".join(f"BETWEEN {a} AND {b} {each}" for (a, b), each in self.given)


ALL_AFTER_COMMIT = Couplings()
WITH_TRANSACTION = Couplings((((2, 3), IN_TRANSACTION), ((3, 4), IN_TRANSACTION)))


def take_couplings(reader: Reader, before: Couplings = ALL_AFTER_COMMIT) -> Couplings:
    """IN TRANSACTION, AFTER COMMIT, or BETWEEN 3 AND 4 SEPARATE SYNCHRONOUS IMMEDIATE, ..."""
    if reader.takes("IN", "TRANSACTION"):
        return WITH_TRANSACTION
    if reader.takes("AFTER", "COMMIT"):
        return ALL_AFTER_COMMIT
    found = before
    while reader.takes("BETWEEN"):
        pair = _pair(reader)
        found = found.with_one(pair, _modes(reader))
        reader.takes(",")
    if found is before:
        raise reader.fault("a coupling is missing", "IN TRANSACTION or AFTER COMMIT")
    return found


def take_protocol(reader: Reader, before: Couplings) -> Couplings:
    """`define communication protocol between <trans1> and <trans2> TransactionCoupling = ...`"""
    found = before
    while reader.takes("DEFINE", "COMMUNICATION", "PROTOCOL", "BETWEEN"):
        pair = _pair(reader)
        found = found.with_one(pair, _modes(reader))
    return found


def _pair(reader: Reader) -> tuple[int, int]:
    word = reader.word
    first = _transaction(reader)
    reader.need("AND")
    pair = (first, _transaction(reader))
    if pair not in PAIRS:
        raise reader.fault(
            f"({pair[0]}) and ({pair[1]}) are no neighbours",
            "the transactions are (1) triggering, (2) detection, (3) condition, (4) query",
            word,
        )
    return pair


def _transaction(reader: Reader) -> int:
    in_parentheses = reader.takes("(")
    number = reader.takes_kind("number")
    if number is None:
        name = reader.takes_one(NAMES)
        if name is None:
            raise reader.fault(
                "a transaction is missing",
                "(1) triggering, (2) detection, (3) condition, (4) query",
            )
        reader.takes_one(("TRANSACTION",))
        found = NAMES[name]
    else:
        found = number.whole or 0
    if in_parentheses:
        reader.need(")")
    return found


def _modes(reader: Reader) -> Coupling:
    """The modes, with or without the names of their fields. What is not said follows from the
    rest."""
    start, said = reader.at, dict[str, str]()
    while True:
        reader.takes_one(FIELDS)
        reader.takes("=")
        reader.takes_one(("CAUSALLY", "CASUALLY"))
        value = reader.takes_one([each for values in FIELDS.values() for each in values])
        if value is None:
            break
        name = next(name for name, values in FIELDS.items() if value in values)
        if name in said:
            raise reader.fault(f"{said[name]} and {value} exclude each other")
        said[name] = value
    if not said:
        raise reader.fault("no mode is said", "SAME or SEPARATE, SYNCHRONOUS or ASYNCHRONOUS, ...")
    deferred = said.get("SCHEDULECOUPLING") == "DEFERRED"
    same = said.get("TRANSACTIONCOUPLING", "SAME" if deferred else "SEPARATE") == "SAME"
    plain = said.get("EXECUTIONCOUPLING", "SYNCHRONOUS" if same else "ASYNCHRONOUS")
    synchronous = plain == "SYNCHRONOUS"
    dependent = None
    if "DEPENDENCYCOUPLING" in said:
        dependent = said["DEPENDENCYCOUPLING"] == "DEPENDENT"
    elif not (same or synchronous or deferred):
        dependent = True
    try:
        return Coupling(same, synchronous, dependent, deferred)
    except TypeFault as error:
        first, last = reader.words[start], reader.words[reader.at - 1]
        error.span = Span(reader.base + first.start, reader.base + last.end)
        raise


def _broken(reason: str) -> TypeFault:
    return TypeFault(
        f"these couplings do not go together: {reason}",
        code="bad-value",
        hint="IN TRANSACTION and AFTER COMMIT are the usual ones",
    )

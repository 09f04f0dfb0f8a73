"""The discrimination network of each rule of a program under a policy, as text and as a picture,
and what the policies would store of it side by side.

RETE's network is figure 1 of the paper, TREAT's figure 2, COSMA's figure 3; the table is the
comparison of section 6. What is round in the picture is computed when it is needed, what is square
is stored, as in figure 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from harken.api.network_drawing import Box, draw_groups
from harken.api.program_notation import atom_text, join_text
from harken.calculus.profitable_relations import Profitable
from harken.calculus.rule_annotations import RuleAnnotation
from harken.calculus.rule_formulas import Formula, Occurrence
from harken.maintenance.materialisation import POLICIES, Parts, has_selection

COSMA = "cosma"
EVERY_JOIN = "every join"
"""What algorithms keep that flatten a network of RETE (DBCond, Rule Materialization)."""
MOST_LITERALS = 6
"""A longer body has too many joins to list."""


@dataclass(frozen=True, slots=True)
class NetworkNode:
    name: str
    text: str
    below: tuple[str, ...]
    is_stored: bool
    level: int
    is_output: bool = False

    def __str__(self) -> str:
        how = "stored" if self.is_stored else "computed"
        return f"{self.name} = {self.text} ({how})" if self.text else f"{self.name} ({how})"


Stored = Mapping[str, Parts]
"""What each policy stores of a rule."""


def network_of(annotation: RuleAnnotation, policy: str, parts: Parts) -> list[NetworkNode]:
    """Inputs first, then what reads them."""
    building = _Building(annotation, prefix="T" if policy == COSMA else "p")
    building.inputs()
    for part in sorted(parts, key=lambda each: len(each.literals)):
        building.store(part, _flags(annotation, part) if policy == COSMA else ())
    if policy != COSMA:
        building.conflict_set()
    building.outputs(by_annotation=policy == COSMA)
    return building.nodes


def _flags(annotation: RuleAnnotation, part: Formula) -> tuple[Occurrence, ...]:
    found = (e for e in annotation.subexpressions if set(part.literals) <= set(e.literals))
    return next((each.filters for each in found), ())


def stored_by_cosma(subexpressions: Sequence[Profitable]) -> Parts:
    return tuple(each.producer for each in subexpressions)


class _Building:
    def __init__(self, annotation: RuleAnnotation, prefix: str) -> None:
        self.nodes: list[NetworkNode] = []
        self._annotation = annotation
        self._body = annotation.formulas.body
        self._prefix = prefix
        self._joins = 0
        self._covers: list[tuple[frozenset[Occurrence], frozenset[Occurrence], str]] = []
        self._levels: dict[str, int] = {}

    def inputs(self) -> None:
        for each in self._all_literals():
            self._add(each.name, "", (), is_stored=True)
        for number, each in enumerate(self._body.positive, start=1):
            if has_selection(self._body, each):
                self._add(f"n{number}", atom_text(each), (each.name,), is_stored=False)
                self._covers.append((frozenset({each}), frozenset(), f"n{number}"))

    def _all_literals(self) -> list[Occurrence]:
        targets = [token.target for token in self._annotation.formulas.tokens]
        return list(dict.fromkeys([*self._body.literals, *targets]))

    def store(self, part: Formula, flags: Sequence[Occurrence]) -> None:
        if len(part.literals) == 1 and not flags:
            (literal,) = part.literals
            self._mark_stored(atom_text(literal))
            return
        below, text = self._cover(part.literals)
        text += "".join(f" ⟕ {atom_text(each)}" for each in flags)
        self._joins += 1
        name = f"{self._prefix}{self._joins}"
        self._add(name, text, (*below, *(each.name for each in flags)), is_stored=True)
        self._covers.append((frozenset(part.literals), frozenset(flags), name))

    def _mark_stored(self, selection: str) -> None:
        for place, node in enumerate(self.nodes):
            if node.text == selection:
                self.nodes[place] = replace(node, is_stored=True)

    def conflict_set(self) -> None:
        below, text = self._cover(self._body.literals)
        self._add("conflict set", text, below, is_stored=True)
        self._covers.append((frozenset(self._body.literals), frozenset(), "conflict set"))

    def outputs(self, *, by_annotation: bool) -> None:
        for effect in self._annotation.effects:
            token = effect.token
            name = f"OT({self._annotation.name}, {token.head.sign}{token.head.relation.name})"
            below, text = self._cover(token.formula.literals)
            stored = by_annotation and effect.materialise
            self._add(name, text, below, is_stored=stored, is_output=True)

    def _cover(self, literals: Sequence[Occurrence]) -> tuple[tuple[str, ...], str]:
        """As few nodes as stand for these literals, and their join: the largest first, inputs
        where there is nothing else. A flag of a node stands for its literal."""
        left, found, joined = dict.fromkeys(literals), list[str](), list[str]()
        for inside, flags, name in sorted(self._covers, key=lambda each: -len(each[0])):
            if not inside <= left.keys():
                continue
            tests = [f"f_{o.name}={str(not o.negated).lower()}" for o in left if o in flags]
            left = dict.fromkeys(each for each in left if each not in inside | flags)
            found.append(name)
            joined.append(f"σ[{', '.join(tests)}] {name}" if tests else name)
        joined += [each.name for each in left if not each.negated]
        negative = "".join(f" ¬⋈ {each.name}" for each in left if each.negated)
        return (*found, *(each.name for each in left)), " ⋈ ".join(joined) + negative

    def _add(
        self,
        name: str,
        text: str,
        below: tuple[str, ...],
        *,
        is_stored: bool,
        is_output: bool = False,
    ) -> None:
        if name in self._levels:
            return
        level = 1 + max((self._levels[each] for each in below), default=-1)
        self._levels[name] = level
        self.nodes.append(NetworkNode(name, text, below, is_stored, level, is_output))


# --- as text, as a picture, side by side -------------------------------------------------------


def network_text(rules: Mapping[str, Sequence[NetworkNode]]) -> str:
    lines: list[str] = []
    for rule, nodes in rules.items():
        lines += [f"{rule} :", *(f"  {each}" for each in nodes if each.text)]
    return "\n".join(lines)


def network_picture(rules: Mapping[str, Sequence[NetworkNode]]) -> str:
    """An SVG document with the network of each rule."""
    return draw_groups({f"rule {rule}": _boxes(nodes) for rule, nodes in rules.items()})


def _boxes(nodes: Sequence[NetworkNode]) -> list[Box]:
    return [
        Box(
            id=node.name,
            level=node.level,
            title=node.name,
            about=node.text,
            below=node.below,
            kind=_kind(node),
            is_round=not node.is_stored,
        )
        for node in nodes
    ]


def _kind(node: NetworkNode) -> str:
    if not node.text:
        return "stored"
    return "condition" if node.is_output else "derived"


def comparison(annotation: RuleAnnotation, stored: Stored) -> Iterator[str]:
    """Each expression that some algorithm would store of a rule, and which of them do."""
    by_policy: dict[str, list[tuple[frozenset[Occurrence], str]]] = {
        policy: [(frozenset(part.literals), join_text(part)) for part in stored[policy]]
        for policy in POLICIES
    }
    by_policy[EVERY_JOIN] = [
        (frozenset(part.literals), join_text(part)) for part in every_join(annotation.formulas.body)
    ]
    texts: dict[frozenset[Occurrence], str] = {}
    for found in by_policy.values():
        for literals, text in found:
            texts.setdefault(literals, text)
    yield f"{annotation.name} :"
    for number, (literals, text) in enumerate(
        sorted(texts.items(), key=lambda each: len(each[0])), start=1
    ):
        keepers = [name for name, found in by_policy.items() if literals in dict(found)]
        yield f"  f{number} = {text}  [{', '.join(keepers)}]"
    for policy in (*POLICIES, EVERY_JOIN):
        yield f"  {policy} keeps {len(by_policy[policy])}"


def every_join(body: Formula) -> Iterator[Formula]:
    """The selections, and all joins of them that are no cartesian products, without and with the
    negative literals that they bind. The whole body is the conflict set."""
    if len(body.positive) > MOST_LITERALS:
        return
    for size in range(1, len(body.positive) + 1):
        for chosen in combinations(body.positive, size):
            if not _is_connected(chosen):
                continue
            is_kept = size > 1 or has_selection(body, chosen[0])
            if is_kept and size < len(body.literals):
                yield Formula(chosen, body.tests)
            bound = frozenset().union(*(each.variables for each in chosen))
            negative = [o for o in body.literals if o.negated and o.variables <= bound]
            if negative and size + len(negative) < len(body.literals):
                yield Formula((*chosen, *negative), body.tests)


def _is_connected(chosen: Sequence[Occurrence]) -> bool:
    reached, left = set(chosen[0].variables), list(chosen[1:])
    while left:
        near = [each for each in left if each.variables & reached]
        if not near:
            return False
        for each in near:
            reached |= each.variables
            left.remove(each)
    return True

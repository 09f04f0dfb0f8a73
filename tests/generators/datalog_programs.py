"""Random programs of Datalog that have a meaning: safe, typed and stratified.

A program is data of its own, not the syntax tree of Harken: `text_of` writes it down, and
`datalog_interpreter` says what it means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

NUMBERS = (0, 1, 2, 3, 4)
SYMBOLS = ("a", "b", "c", "ab")


@dataclass(frozen=True)
class Var:
    name: str


@dataclass(frozen=True)
class Wild:
    """Each is a variable of its own; the number tells them apart."""

    number: int


@dataclass(frozen=True)
class Const:
    value: int | str


@dataclass(frozen=True)
class Apply:
    operator: str
    left: Expr
    right: Expr


Expr = Var | Const | Apply
Argument = Var | Wild | Const


@dataclass(frozen=True)
class Lit:
    """`kind` is atom, not, compare (left operator right), or aggregate (left = ...)."""

    kind: str
    relation: str = ""
    arguments: tuple[Argument, ...] = ()
    operator: str = ""
    left: Expr | None = None
    right: Expr | None = None
    inner: tuple[Lit, ...] = ()
    """Of an aggregate, in an order in which its variables are bound."""


@dataclass(frozen=True)
class RandomRule:
    """The alternatives of the body are joined by `;` behind what they have in common."""

    heads: tuple[tuple[str, tuple[Expr, ...]], ...]
    body: tuple[Lit, ...]
    alternatives: tuple[tuple[Lit, ...], ...] = ()


@dataclass
class RandomProgram:
    columns: dict[str, str]
    """For each relation the kinds of its attributes: n for number, s for symbol."""
    stored: list[str]
    groups: list[list[str]]
    """The derived relations, those that depend on each other together, lowest first."""
    rules: list[RandomRule] = field(default_factory=list)
    facts: dict[str, set[tuple[int | str, ...]]] = field(default_factory=dict)

    @property
    def derived(self) -> list[str]:
        return [name for group in self.groups for name in group]


# --- making --------------------------------------------------------------------------------


class Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.wild = 0

    def program(self) -> RandomProgram:
        random = self.random
        columns: dict[str, str] = {}
        stored = [f"e{i}" for i in range(random.randint(1, 3))]
        for name in stored:
            columns[name] = "".join(random.choice("nns") for _ in range(random.randint(1, 3)))
        groups = []
        for number in range(random.randint(1, 4)):
            group = [f"d{number}"] + ([f"d{number}x"] if random.random() < 0.3 else [])
            for name in group:
                columns[name] = "".join(random.choice("nns") for _ in range(random.randint(1, 2)))
            groups.append(group)
        made = RandomProgram(columns, stored, groups)
        for name in stored:
            made.facts[name] = self.rows(columns[name], random.randint(0, 6))
        below = list(stored)
        for group in groups:
            for name in group:
                for _ in range(random.randint(1, 3)):
                    made.rules.append(self.rule(made, name, group, below))
                if random.random() < 0.2:
                    made.facts[name] = self.rows(columns[name], 2)
            below += group
        return made

    def rows(self, kinds: str, count: int) -> set[tuple[int | str, ...]]:
        return {tuple(self.value(kind) for kind in kinds) for _ in range(count)}

    def value(self, kind: str) -> int | str:
        return self.random.choice(NUMBERS if kind == "n" else SYMBOLS)

    def rule(
        self, program: RandomProgram, name: str, group: list[str], below: list[str]
    ) -> RandomRule:
        random = self.random
        bound: dict[str, str] = {}
        body: list[Lit] = []
        for _ in range(random.randint(1, 3)):
            pool = group if random.random() < 0.35 else below
            body.append(self.atom(program, random.choice(pool), bound, "ns"))
        recursive = any(each.relation in group for each in body)
        for _ in range(random.randint(0, 2)):
            body += self.test(program, bound, below, recursive)
        alternatives: tuple[tuple[Lit, ...], ...] = ()
        if bound and random.random() < 0.2:
            alternatives = tuple((self.comparison(bound),) for _ in range(2))
        heads = [self.head(program, name, bound, recursive)]
        if random.random() < 0.15:
            heads.append(self.head(program, random.choice(group), bound, recursive))
        return RandomRule(tuple(heads), tuple(body), alternatives)

    def head(
        self, program: RandomProgram, name: str, bound: dict[str, str], recursive: bool
    ) -> tuple[str, tuple[Expr, ...]]:
        return name, tuple(self.given(kind, bound, recursive) for kind in program.columns[name])

    def given(self, kind: str, bound: dict[str, str], recursive: bool) -> Expr:
        """A value of what is bound; in a recursive rule one of finitely many."""
        if kind == "n" and self.random.random() < 0.3:
            made = self.arithmetic(bound)
            return Apply("%", made, Const(5)) if recursive else made
        if kind == "s" and not recursive and self.random.random() < 0.1:
            return Apply("cat", self.operand("s", bound), self.operand("s", bound))
        return self.operand(kind, bound)

    def operand(self, kind: str, bound: dict[str, str]) -> Expr:
        names = [name for name, known in bound.items() if known == kind]
        if names and self.random.random() < 0.85:
            return Var(self.random.choice(names))
        return Const(self.value(kind))

    def arithmetic(self, bound: dict[str, str]) -> Expr:
        operator = self.random.choice(
            ["+", "-", "*", "band", "bor", "bxor", "min", "max", "/", "%", "strlen"]
        )
        if operator == "strlen":
            return Apply("strlen", self.operand("s", bound), Const(""))
        right = Const(2) if operator in "/%" else self.operand("n", bound)
        return Apply(operator, self.operand("n", bound), right)

    def atom(self, program: RandomProgram, name: str, bound: dict[str, str], own: str = "") -> Lit:
        """A positive atom; its new variables are bound from now on."""
        arguments: list[Argument] = []
        for kind in program.columns[name]:
            roll = self.random.random()
            if roll < 0.12:
                arguments.append(Const(self.value(kind)))
            elif roll < 0.25:
                self.wild += 1
                arguments.append(Wild(self.wild))
            else:
                variable = f"{own}{kind}{self.random.randint(1, 3)}"
                arguments.append(Var(variable))
                bound[variable] = kind
        return Lit("atom", name, tuple(arguments))

    def test(
        self, program: RandomProgram, bound: dict[str, str], below: list[str], recursive: bool
    ) -> list[Lit]:
        random = self.random
        match random.choice(["compare", "not", "bind", "aggregate"]):
            case "compare":
                return [self.comparison(bound)]
            case "not":
                return [self.negated(program, random.choice(below), bound)]
            case "bind":
                name = f"v{random.randint(1, 2)}"
                if name in bound:
                    return []
                made = self.arithmetic(bound)
                bound[name] = "n"
                right = Apply("%", made, Const(5)) if recursive else made
                return [Lit("compare", operator="=", left=Var(name), right=right)]
        return self.aggregate(program, bound, below)

    def comparison(self, bound: dict[str, str]) -> Lit:
        kind = self.random.choice("ns")
        operator = self.random.choice(["=", "!=", "<", "<=", ">", ">="])
        left, right = self.operand(kind, bound), self.operand(kind, bound)
        return Lit("compare", operator=operator, left=left, right=right)

    def negated(self, program: RandomProgram, name: str, bound: dict[str, str]) -> Lit:
        arguments: list[Argument] = []
        for kind in program.columns[name]:
            made = self.operand(kind, bound)
            if self.random.random() < 0.2:
                self.wild += 1
                arguments.append(Wild(self.wild))
            else:
                assert isinstance(made, Var | Const)
                arguments.append(made)
        return Lit("not", name, tuple(arguments))

    def aggregate(
        self, program: RandomProgram, bound: dict[str, str], below: list[str]
    ) -> list[Lit]:
        """Some of its variables are those of the rule, the others its own."""
        random = self.random
        name = f"a{random.randint(1, 2)}"
        if name in bound:
            return []
        inside: dict[str, str] = {}
        inner: list[Lit] = []
        for _ in range(random.randint(1, 2)):
            own = "i" if random.random() < 0.7 else ""
            atom = self.atom(program, random.choice(below), inside, own)
            shared = [
                Var(f"i{a.name}") if isinstance(a, Var) and own == "" and a.name not in bound else a
                for a in atom.arguments
            ]
            inner.append(Lit("atom", atom.relation, tuple(shared)))
        inside = {
            argument.name: argument.name.removeprefix("i")[0]
            for each in inner
            for argument in each.arguments
            if isinstance(argument, Var)
        }
        if random.random() < 0.4:
            known = {**bound, **inside}
            left, right = self.operand("n", known), self.operand("n", known)
            if isinstance(left, Var) or isinstance(right, Var):
                operator = random.choice(["!=", "<", "<="])
                inner.append(Lit("compare", operator=operator, left=left, right=right))
        operator = random.choice(["count", "sum", "min", "max"])
        value: Expr | None = None
        if operator != "count":
            value = self.operand("n", inside)
        bound[name] = "n"
        return [
            Lit("aggregate", operator=operator, left=Var(name), right=value, inner=tuple(inner))
        ]


# --- writing -------------------------------------------------------------------------------


def text_of(program: RandomProgram, random: Random) -> str:
    """The program as text. Bodies come in any order, and so do statements."""
    kinds = {"n": "number", "s": "symbol"}
    lines = []
    for name, given in program.columns.items():
        attributes = ", ".join(f"x{i}: {kinds[kind]}" for i, kind in enumerate(given))
        lines.append(f".decl {name}({attributes})")
    for name, rows in program.facts.items():
        lines += [f"{fact(name, row)}." for row in sorted(rows, key=repr)]
    lines += [rule_text(rule, random) for rule in program.rules]
    random.shuffle(lines)
    return "\n".join(lines)


def fact(name: str, row: tuple[int | str, ...]) -> str:
    return f"{name}({', '.join(expression(Const(value)) for value in row)})"


def rule_text(rule: RandomRule, random: Random) -> str:
    heads = [f"{name}({', '.join(map(expression, given))})" for name, given in rule.heads]
    parts = [literal(each, random) for each in rule.body]
    if rule.alternatives:
        chosen = [", ".join(literal(x, random) for x in each) for each in rule.alternatives]
        parts.append(f"({'; '.join(chosen)})")
    random.shuffle(parts)
    return f"{', '.join(heads)} :- {', '.join(parts)}."


def literal(each: Lit, random: Random) -> str:
    match each.kind:
        case "atom" | "not":
            given = ", ".join(map(expression, each.arguments))
            return f"{'!' if each.kind == 'not' else ''}{each.relation}({given})"
        case "compare":
            return f"{expression(each.left)} {each.operator} {expression(each.right)}"
    inner = [literal(x, random) for x in each.inner]
    random.shuffle(inner)
    value = "" if each.right is None else f"{expression(each.right)} "
    return f"{expression(each.left)} = {each.operator} {value}: {{ {', '.join(inner)} }}"


def expression(given: Expr | Wild | None) -> str:
    match given:
        case Var():
            return given.name
        case Wild():
            return "_"
        case Const():
            return f'"{given.value}"' if isinstance(given.value, str) else str(given.value)
        case Apply("strlen", left, _):
            return f"strlen({expression(left)})"
        case Apply("cat" | "min" | "max" as operator, left, right):
            return f"{operator}({expression(left)}, {expression(right)})"
        case Apply(operator, left, right):
            return f"({expression(left)} {operator} {expression(right)})"
    raise ValueError(given)

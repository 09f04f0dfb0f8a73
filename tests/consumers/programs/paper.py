"""Rule r1 of section 3 of the paper with the state of its table 1, for Harken and for the model."""

from tests.models.productions import Fact, Lit, Program, Rule, State, Var

STATE = """
.decl a(x: number, k: symbol, z: number)
.decl b(x: number, y: number, k: symbol)
.decl c(k: symbol, x: number, y: number)
a(0, "alpha", 1). a(2, "alpha", 0). a(3, "alpha", 1).
b(0, 2, "beta"). b(2, 0, "beta"). b(3, 2, "beta"). b(4, 3, "beta").
c("gamma", 2, 1). c("gamma", 0, 3).
"""
R1 = (
    'rule r1: a(x, "alpha", z), b(x, y, "beta"), c("gamma", y, w) '
    '-> c("gamma", x, w), !c("gamma", y, z).'
)
R2 = 'rule r2: a(x, "alpha", z), b(x, y, "beta"), c("gamma", y, w) -> !b(y, z, "beta").'

_BODY = (
    Lit("a", (Var("x"), "alpha", Var("z"))),
    Lit("b", (Var("x"), Var("y"), "beta")),
    Lit("c", ("gamma", Var("y"), Var("w"))),
)
_HEAD = (
    Lit("c", ("gamma", Var("x"), Var("w"))),
    Lit("c", ("gamma", Var("y"), Var("z")), positive=False),
)


def program(*, by_instance: bool) -> Program:
    return Program((Rule("r1", _BODY, _HEAD, by_instance),))


FACTS: State = frozenset(
    {
        *(("a", row) for row in [(0, "alpha", 1), (2, "alpha", 0), (3, "alpha", 1)]),
        *(("b", row) for row in [(0, 2, "beta"), (2, 0, "beta"), (3, 2, "beta"), (4, 3, "beta")]),
        *(("c", row) for row in [("gamma", 2, 1), ("gamma", 0, 3)]),
    }
)


def c_of(state: State) -> set[str]:
    """The facts of C as the issue writes them: 03 for C(γ, 0, 3)."""
    facts: list[Fact] = [fact for fact in state if fact[0] == "c"]
    return {f"{x}{y}" for _, (_, x, y) in facts}

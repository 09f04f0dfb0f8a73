"""The annotations of section 5.4 in the layout of the paper, with its corrections."""

import pytest

import harken
from tests.calculus.paper_program import PROGRAM

R1 = """
r1 : set-oriented, changes {+C, -C}
  what is stored also follows {-A, +F}
  Subexp :
    e1 = Π{x,z}(σ[A.2="alpha"] A(x,_,y) ⋈ σ[B.2="beta"] B(y,_,z) ⋈ σ[E.3="gamma"] E(z,v,_) \
¬⋈ F(x,z)) ⟕ C(x,z)
    ∂e1+/∂+C = (Π{x,z} T1 ⋈ Δ+C(x,z)) × {f_C=true}
    ∂e1-/∂+C = T1 ⋈ Δ+C(x,z)
    ∂e1+/∂-C = (Π{x,z} T1 ⋈ Δ-C(x,z)) × {f_C=false}
    ∂e1-/∂-C = T1 ⋈ Δ-C(x,z)
  Effect :
    e2 = OT(r1, C) = Π{x,z}(σ[f_C=false] T1)
    ∂e2+/∂T1 = Π{x,z}(Δ+T1)
    Materialize : false
"""
R2 = """
r2 : set-oriented, changes {+C, +D, -C}
  Effect :
    e3 = OT(r2, D) = Π{z,u,x}(C(x,y) ⋈ D1(y,z,u) ¬⋈ D2(z,u,x))
    ∂e3+/∂+C = Π{z,u,x}(Δ+C(x,y) ⋈ D1(y,z,u) ¬⋈ D2(z,u,x))
    ∂e3+/∂+D = Π{z,u,x}(Δ+D1(y,z,u) ⋈ C(x,y) ¬⋈ D2(z,u,x))
    Materialize : false
"""
R3 = """
r3 : set-oriented, changes {+C, +D, -C}
  Subexp :
    e4 = σ[B.3="beta"] B(x,y,_) ⋈ E(z,u,x) ¬⋈ σ[D1.1="delta"] D1(_,y,x) ⟕ C(y,x)
    ∂e4-/∂+D = T2 ⋈ σ[D1.1="delta"] Δ+D1(_,y,x)
    ∂e4+/∂+C = (Π{x,y,z,u} T2 ⋈ Δ+C(y,x)) × {f_C=true}
    ∂e4-/∂+C = T2 ⋈ Δ+C(y,x)
    ∂e4+/∂-C = (Π{x,y,z,u} T2 ⋈ Δ-C(y,x)) × {f_C=false}
    ∂e4-/∂-C = T2 ⋈ Δ-C(y,x)
  Effect :
    e5 = OT(r3, D) = Π{"delta",z,x}(T2 ¬⋈ σ[D2.1="delta"] D2(_,z,x))
    ∂e5 = ∅
    Materialize : false
    e6 = OT(r3, ¬C) = Π{y,x}(σ[f_C=true] T2)
    ∂e6+/∂T2 = Π{y,x}(Δ+T2)
    Materialize : false
"""
R4 = """
    ∂e8 = ∅
    Materialize : false
    computed once: the rule fires at most once
"""


@pytest.mark.parametrize("part", [R1, R2, R3, R4], ids=["r1", "r2", "r3", "r4"])
def test_example_5_4(part: str) -> None:
    with harken.connect() as db:
        assert part.strip("\n") in db.program(PROGRAM).explain()


def test_table_5_2_is_printed() -> None:
    with harken.connect() as db:
        relevant = db.program(PROGRAM).explain().split("Relevant under the priorities:")[1]
    assert "  r3 → r1: {¬C + C}\n" in relevant
    assert "r1 → r4" not in relevant


def test_instance_oriented_rules_maintain_their_output_tokens() -> None:
    text = ".decl a(x: number) .decl b(x: number) rule r [instance]: a(x), !b(x) -> b(x)."
    with harken.connect() as db:
        shown = db.program(text).explain()
    assert "Materialize : true" in shown
    assert "∂e1-/∂+b = Π{x}(Δ+b1(x) ⋈ a(x) ¬⋈ b2(x))" in shown

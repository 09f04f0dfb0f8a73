"""The networks of figures 1 to 3 of the paper on rule programs, and the comparison of section 6."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import harken
from harken.cli import app
from harken.maintenance.materialisation import POLICIES
from tests.calculus.paper_program import PROGRAM

FIGURE_1 = """
.decl a(x: number, k: symbol, z: number)  .decl b(x: number, y: number, k: symbol)
.decl c(k: symbol, x: number, y: number)
rule r1: a(x, "alpha", z), b(x, y, "beta"), c("gamma", y, w) -> c("gamma", x, w), !c("gamma", y, z).
"""


def network(text: str, policy: str) -> list[str]:
    with harken.connect() as db:
        return db.program(text).network(policy).splitlines()


def test_figure_1_rete_stores_the_join_of_two() -> None:
    assert network(FIGURE_1, "rete")[:6] == [
        "r1 :",
        '  n1 = σ[a.2="alpha"] a(x,_,z) (stored)',
        '  n2 = σ[b.3="beta"] b(x,y,_) (stored)',
        '  n3 = σ[c1.1="gamma"] c1(_,y,w) (stored)',
        "  p1 = n1 ⋈ n2 (stored)",
        "  conflict set = p1 ⋈ n3 (stored)",
    ]


def test_figure_2_treat_does_not() -> None:
    found = network(FIGURE_1, "treat")
    assert "  conflict set = n1 ⋈ n2 ⋈ n3 (stored)" in found
    assert not any(line.startswith("  p1") for line in found)


def test_figure_3_what_cosma_stores_of_the_program_of_section_5_2() -> None:
    found = network(PROGRAM, "cosma")
    assert [line for line in found if line.endswith("(stored)")] == [
        "  T1 = n1 ⋈ n2 ⋈ n3 ¬⋈ F ⟕ C(x,z) (stored)",
        "  T1 = n1 ⋈ E ¬⋈ D1 ⟕ C(y,x) (stored)",
    ]
    assert "  OT(r1, C) = σ[f_C=false] T1 (computed)" in found
    assert "  OT(r3, ¬C) = σ[f_C=true] T1 (computed)" in found


def test_section_6_compares_what_would_be_stored_of_r1() -> None:
    """The paper's f7, f8, f9 and f11 join with F without binding its variables: they are none."""
    with harken.connect() as db:
        compared = db.program(PROGRAM).explain().split("What each policy stores:")[1]
    of_r1 = compared.split("r2 :")[0]
    assert '  f1 = σ[A.2="alpha"] A(x,_,y)  [rete, treat, atreat, every join]' in of_r1
    joined = 'σ[A.2="alpha"] A(x,_,y) ⋈ σ[B.2="beta"] B(y,_,z) ⋈ σ[E.3="gamma"] E(z,v,_)'
    assert f"= {joined} ¬⋈ F(x,z)  [cosma]" in of_r1
    for line in ("rete keeps 4", "treat keeps 3", "cosma keeps 1", "every join keeps 7"):
        assert line in of_r1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("text", [FIGURE_1, PROGRAM], ids=["figure 1", "section 5.2"])
def test_a_picture_has_all_nodes(text: str, policy: str) -> None:
    with harken.connect() as db:
        program = db.program(text)
        picture = ElementTree.fromstring(program.network(policy, "svg"))
        shown = program.network(policy)
    titles = {each.text for each in picture.iter("{http://www.w3.org/2000/svg}text")}
    named = {line.split(" = ")[0].strip() for line in shown.splitlines() if " = " in line}
    assert named
    assert named <= titles


def test_the_command_line_prints_them(tmp_path: Path) -> None:
    file = tmp_path / "p.dl"
    file.write_text(FIGURE_1, "utf-8")
    shown = CliRunner().invoke(app, ["explain", str(file), "--materialise", "rete"])
    assert "  p1 = n1 ⋈ n2 (stored)" in shown.stdout
    drawn = CliRunner().invoke(app, ["explain", str(file), "--format", "svg"])
    assert drawn.stdout.startswith("<svg")


@pytest.mark.parametrize("wrong", [{"materialise": "auto"}, {"format": "png"}])
def test_a_wrong_choice_is_refused(wrong: dict[str, str]) -> None:
    with harken.connect() as db, pytest.raises(harken.HarkenError, match="is one of") as refused:
        db.program(FIGURE_1).network(**wrong)
    assert refused.value.code == "bad-value"

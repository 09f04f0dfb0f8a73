"""Whatever the text, the answer is a tree or a SyntaxFault that points into the text.

And the two ways to parse agree: `statements`, with its slots filled, is `parse`, faults included.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harken.errors import SyntaxFault
from harken.lang.amosql import statement_shapes
from harken.lang.amosql.parser import parse
from harken.lang.amosql.tree_walk import descendants

INVENTORY = """
create type item properties (name charstring, quantity integer);
create type supplier;
create function delivery_time(item, supplier) -> integer;
create function threshold(item i) -> integer as
    select 20 * delivery_time(i, s) + 100 for each supplier s where supplies(s) = i;
create item(name, quantity) instances :laces("Shoe laces", 140), ('Ty\\'s', -1);
set delivery_time(:laces, :inc) = 2;   /* days; not hours */
add supplies(:inc) = :laces; remove supplies(:inc) = :socks;
for each item i where quantity(i) < threshold(i) do order(i, 5000 - quantity(i));
"""
SCHOOL = """
create type student subtype of person, animal;
create function teach(teacher, student s, course c) -> boolean as begin
    declare course old, integer n;
    set old = studies(s); set n = -5 + 2.5e-3 * .5;
    if old = c or not gives(teacher) in <c, old> then print("same; again") else rollback; end if;
    for each student t where studies(t) = old print(name(t), 'left');
    return c;
end;
add teacher to :amos, :iris; call teach(:amos, :iris, :active);
if a then x(); else begin y(); z() end;
delete function person.name; delete type person; delete :iris
"""
SALARIES = """
select distinct name(e), <1, -income(e)> for each employee e, department d
    where employee.netincome(e) >= 0.75 * 10000 and hired(e) > |2026-11-15/08:30:00| or true;
set :total = sum(select income(e) for each employee e); commit work;
print(#'employee.netincome', "a" || "b\\n\\u00e5" || 'c', |2026-11-15|, count((select 1)));
set income(:e1) = -9223372036854775808; set income(:e2) = 10600; income(:e2) - 5 == -5;
create function f() -> bag of <integer a, real> as foreign "module:f"; rollback;
"""
RULES = """
create rule low(item i) as when quantity(i) < threshold(i) do order(i, 5000 - quantity(i));
create nervous immediate rule watch() on added(supplies) or updated(item.quantity) as
    for each item i, supplier s when supplies(s) = i do begin add seen(i) = 1; print("; end"); end;
create rule all() detached as strict when for each item i where p(i) do
    if quantity(i) < 0 then rollback; else deactivate low(i); end if;
create rule audit() as on removed(quantity), added(quantity) do print('changed');
activate low(:laces); activate low(:socks) priority 3; ACTIVATE all; deactivate low(:socks);
create function arm(item i) -> boolean as begin activate low(i) priority 5; activate(i); end;
delete rule watch; priority(:rule, on); activate low(:laces)  priority /* low */ 0
"""
SCRIPTS = (INVENTORY, SCHOOL, SALARIES, RULES)
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
ODD = ["begin", "end", "end if", "; else", "if", "then", "for each", "select", "create rule r", ";"]
ODD += ["(", ")", "<", ">", "-", "||", "|", '"', "'", "#'", ":x", "/*", "*/", "\\", "?i", ":?", "."]
ODD += ["5", "5.", "99999999999999999999", "|2026-02-30|", "\0", "\ud800", "\ufeff", "é", "true"]
ODD += ["on", "added(f)", "as", "when", "do", "strict", "activate", "priority 3", "delete rule r"]

places = st.integers(0, 10_000)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A good script with a few of its tokens or characters lost, doubled, swapped or replaced."""
    script = draw(st.sampled_from(SCRIPTS))
    parts = TOKEN.findall(script) if draw(st.booleans()) else list(script)
    for _ in range(draw(st.integers(1, 4))):
        at, other = draw(places) % len(parts), draw(places) % len(parts)
        match draw(st.sampled_from(["lose", "double", "swap", "insert", "cut off"])):
            case "lose":
                del parts[at : at + draw(st.integers(1, 3))]
            case "double":
                parts.insert(other, parts[at])
            case "swap":
                parts[at], parts[other] = parts[other], parts[at]
            case "insert":
                parts.insert(at, draw(st.sampled_from(ODD)))
            case "cut off":
                del parts[max(at, 1) :]
        parts = parts or [";"]
    return "".join(parts)


def check(text: str) -> None:
    try:
        trees = list(parse(text))
    except SyntaxFault as fault:
        check_fault(fault, text)
        check_same_fault(fault, text)
        return
    found = statement_shapes.statements(text)
    # By their text, because 1 equals 1.0 and True.
    assert repr([statement_shapes.filled(parsed) for parsed in found]) == repr(trees)
    assert repr([statement_shapes.reparse(parsed) for parsed in found]) == repr(trees)
    assert [parsed.text for parsed in found] == [text[p.offset :][: len(p.text)] for p in found]
    for node, _ in (pair for tree in trees for pair in descendants(tree)):
        assert 0 <= node.span.start < node.span.end <= len(text)


def check_fault(fault: SyntaxFault, text: str) -> None:
    assert fault.span is not None
    assert 0 <= fault.span.start <= fault.span.end <= len(text)
    assert fault.message.isprintable()
    assert fault.hint


def check_same_fault(fault: SyntaxFault, text: str) -> None:
    with pytest.raises(SyntaxFault) as caught:
        statement_shapes.statements(text)
    assert vars(caught.value) == vars(fault)


def test_the_scripts_are_good() -> None:
    for script in SCRIPTS:
        assert len(parse(script)) > 5
        check(script)


@given(damaged())
def test_damaged_scripts(text: str) -> None:
    check(text)


@given(st.text() | st.lists(st.sampled_from(ODD)).map(" ".join))
@example("select\0")
@example("set f(:?) = ?i; set f(:x) = 5")
@example("set f(:x) = 5; set f(:?) = ?i")
@example("set end(:x) = begin(:y); create function begin(end begin) -> end; begin end; end")
@example("\ud800")
def test_any_text(text: str) -> None:
    check(text)

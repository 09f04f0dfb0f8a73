"""Templates: what they may read, what they cannot do, and mistakes that show when one is saved."""

from __future__ import annotations

import pytest

from harken.errors import HarkenError
from harken.notify.templates import Template, check_template, render, sample_context

FIELDS = {"symbol": "text", "price": "number"}
ALERT = Template(
    "stock_alert",
    "{% for row in inserted %}{{ row.symbol }} is at {{ row.price | round(2) }}\n{% endfor %}"
    "{% if left_out.inserted %}and {{ left_out.inserted }} more{% endif %}",
    "{{ query }}: {{ symbol }}",
    "<b>{{ symbol }}</b>",
    FIELDS,
)


def test_a_template_reads_rows_by_their_fields() -> None:
    check_template(ALERT)
    found = render(ALERT, sample_context(ALERT))
    assert found.subject == "sample: abc"
    assert found.text == "abc is at 2.5\nabc is at 2.5\nand 412 more"
    context = sample_context(ALERT) | {"symbol": "<script>\r\nBcc: x"}
    found = render(ALERT, context)
    assert found.html == "<b>&lt;script&gt;\r\nBcc: x</b>"
    assert found.subject == "sample: <script> Bcc: x"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ row.symbol }}", "'row' is undefined"),
        ("{% for row in inserted %}{{ row.prise }}{% endfor %}", "no attribute 'prise'"),
        ("{{ symbol", "cannot be read: line 1"),
        ("{% for a in inserted %}", "cannot be read"),
        ("{{ ''.__class__.__mro__ }}", "cannot be rendered"),
        ("{{ inserted.append(1) }}", "cannot be rendered"),
        ("{{ range(10) }}", "cannot be rendered"),
        ("{{ 'a' * 1000000000 }}", "\\* is for numbers"),
        ("{{ 9 ** 99999999 }}", "\\*\\* is for numbers"),
        ("{% include 'x' %}", "cannot use include"),
        ("{% set s = symbol %}", "cannot use set"),
        ("{{ symbol | attr('__class__') }}", "No filter named 'attr'"),
        ("{{ symbol + 1 }}", "\\+ is for numbers"),
        (
            "{% for a in rows %}{% for b in rows %}{% for c in rows %}x"
            "{% endfor %}{% endfor %}{% endfor %}",
            "loops may be 2 deep",
        ),
        (" ", "says nothing"),
    ],
)
def test_mistakes_and_tricks_are_refused_when_it_is_saved(text: str, said: str) -> None:
    with pytest.raises(HarkenError, match=said):
        check_template(Template("t", text, fields=FIELDS))


def test_fields_have_known_types_and_names_of_their_own() -> None:
    with pytest.raises(HarkenError, match="cannot be of type blob"):
        check_template(Template("t", "x", fields={"a": "blob"}))
    with pytest.raises(HarkenError, match="cannot be called rows"):
        check_template(Template("t", "x", fields={"rows": "text"}))

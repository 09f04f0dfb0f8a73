"""The events of triggers, as section 4.2.3.2 of the thesis prints them."""

import pytest

from harken.lang.continual.trigger_text import read_trigger
from harken.lang.continual.triplets import triplets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (  # the third is printed as IncreaseBy%, though the condition says DecreaseBy%
            "Stock.price(IBM) IncreaseBy% 5 OR Stock.price(Intel) DecreaseBy% 5",
            [
                "(Stock.price, Stock.price INCBYP 5, WHERE)",
                "(Stock.company, Stock.company = IBM, OR)",
                "(Stock.price, Stock.price DECBYP 5, WHERE)",
                "(Stock.company, Stock.company = Intel, END)",
            ],
        ),
        (
            "qty_on_hand(item) > threshold(item)",
            ["(qty_on_hand, true, >)", "(threshold, true, END)"],
        ),
        (
            "qty_on_hand + qty_on_order < threshold",
            ["(qty_on_hand, true, +)", "(qty_on_order, true, <)", "(threshold, true, END)"],
        ),
        (
            "keyword CONTAINS 'Java' OR keyword CONTAINS 'JDBC'",
            ["(keyword, keyword CONTAINS 'Java', OR)", "(keyword, keyword CONTAINS 'JDBC', END)"],
        ),
        (
            "STOCK.price DECBYP 5 WHERE STOCK.companyname = 'IBM' OR MAX(STOCK.volume) < 9",
            [
                "(STOCK.price, STOCK.price DECBYP 5, WHERE)",
                "(STOCK.companyname, STOCK.companyname = 'IBM', OR)",
                "(STOCK.volume, MAX(STOCK.volume) < 9, END)",
            ],
        ),
        (
            "WHEN SIGNAL x THEN ON INSERT OF t WHERE a > 1",
            ["(SIGNAL x, true, THEN)", "(t, INSERT, WHERE)", "(a, a > 1, END)"],
        ),
        (
            "WHEN NOT a > 1 AND ANY OF (b CHANGES FOR MORE THAN 5 MINUTES, c INCBY 2)",
            [
                "(a, NOT a > 1, AND)",
                "(b, b CHANGES FOR MORE THAN 5 MINUTE, OR)",
                "(c, c INCBY 2, END)",
            ],
        ),
    ],
)
def test_triplets(text: str, expected: list[str]) -> None:
    found = triplets(read_trigger(text).condition, lambda table: ("company",))
    assert [str(each) for each in found] == expected

"""Triggers as they are written: every one that the thesis prints, and those of our layout."""

import pytest

from harken.errors import HarkenError
from harken.lang.continual.trigger_text import LONGEST, read_trigger
from tests.lang.continual.written import written

THESIS = [
    # section 2.2, example 2, and the inventory of 4.2.3
    (
        "qty_on_hand + qty_on_order < threshold;",
        "[qty_on_hand + qty_on_order < threshold]",
    ),
    ("qty_on_hand(item) > threshold(item)", "[QTY_ON_HAND(item) > THRESHOLD(item)]"),
    (
        "qty_on_hand(item) + qty_on_order > threshold(item)",
        "[QTY_ON_HAND(item) + qty_on_order > THRESHOLD(item)]",
    ),
    # section 2.4.1
    ("stock.price > 100", "[stock.price > 100]"),
    # section 2.4.2: weather, Bayer
    (
        "FROM www.nws.nova.gov WHERE location like 'Savannah' AND state = 'Georgia'\n"
        "OR location like 'Fort Stewart';",
        "any www.nws.nova.gov WHERE location LIKE 'Savannah' AND state = 'Georgia' "
        "OR location LIKE 'Fort Stewart'",
    ),
    (
        "Stock.company_name = 'Bayer AG' AND Stock.stock_price DecreaseBy% 5;",
        "All([Stock.company_name = 'Bayer AG'], [DECBYP(Stock.stock_price, 5)])",
    ),
    ("IncreaseBy%(X) ≤ 5", "[INCBYP(X, 5)]"),
    ("DecreaseBy%(Y) ≤ 5", "[DECBYP(Y, 5)]"),
    # section 4.2.3
    (
        "Stock.price(IBM) IncreaseBy% 5 OR Stock.price(Intel) DecreaseBy% 5",
        "Either([INCBYP(Stock.price(IBM), 5)], [DECBYP(Stock.price(Intel), 5)])",
    ),
    (
        "keyword CONTAINS 'Java' OR keyword CONTAINS 'JDBC'",
        "Either([CONTAINS(keyword, 'Java')], [CONTAINS(keyword, 'JDBC')])",
    ),
    # section 6.2
    (
        "STOCK.PRICE > 500 WHERE STOCK.SYMBOL = 'IBM'",
        "[STOCK.PRICE > 500 WHERE STOCK.SYMBOL = 'IBM']",
    ),
    (
        "AVG(DEPT.SALE) > 40000 GROUPBY SALE.ITEM",
        "[AVG(DEPT.SALE) > 40000 GROUP BY SALE.ITEM]",
    ),
    (
        "STOCK.price DECBYP 5 WHERE STOCK.companyname = 'IBM'\n"
        "OR MAX(STOCK.trans_volume) < 2390000",
        "Either([DECBYP(STOCK.price, 5) WHERE STOCK.companyname = 'IBM'], "
        "[MAX(STOCK.trans_volume) < 2390000])",
    ),
]


@pytest.mark.parametrize(("text", "expected"), THESIS)
def test_what_the_thesis_prints(text: str, expected: str) -> None:
    assert written(read_trigger(text).condition) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a > 1 WHERE x = 1 ^ (y = 2 OR z = 3) AND b > 2",
            "All([a > 1 WHERE x = 1 AND (y = 2 OR z = 3)], [b > 2])",
        ),
        ("a > 1 GROUPBY x, y OR b CHANGES", "Either([a > 1 GROUP BY x, y], [CHANGES(b)])"),
        ("a > 1 AND b > 2 WHERE x = 1", "All([a > 1], [b > 2 WHERE x = 1])"),
        (
            "(a > 1 OR b > 2) WHERE x = 1 AND c > 3",
            "All(Either([a > 1 WHERE x = 1], [b > 2 WHERE x = 1]), [c > 3])",
        ),
    ],
)
def test_joining_words_in_the_layout_of_the_thesis(text: str, expected: str) -> None:
    assert written(read_trigger(text).condition) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "WHEN stock.price DECBYP 5 WHERE stock.company = 'Bayer AG' AND x = 1",
            "[DECBYP(stock.price, 5) WHERE stock.company = 'Bayer AG' AND x = 1]",
        ),
        (
            "WHEN a > 1 OR b CHANGES WHERE c = 3 GROUP BY d",
            "Either([a > 1 WHERE c = 3 GROUP BY d], [CHANGES(b) WHERE c = 3 GROUP BY d])",
        ),
        (
            "WHEN (a > 1 WHERE x = 2) OR (b > 2 WHERE c = 4)",
            "Either([a > 1 WHERE x = 2], [b > 2 WHERE c = 4])",
        ),
        (
            "WHEN a > 1 THEN b > 2 THEN c > 3 WITHIN 10 MINUTES",
            "Sequence([a > 1], [b > 2], [c > 3]) in 10 MINUTE",
        ),
        (
            "WHEN a > 1 THEN b > 2 ELSE SIGNAL s",
            "Alternative(Sequence([a > 1], [b > 2]), signal s)",
        ),
        ("WHEN ALL OF (a > 1, SIGNAL s) WITHIN 2 HOURS", "Parallel([a > 1], signal s) in 2 HOUR"),
        ("WHEN ANY OF (a > 1, b > 2)", "Either([a > 1], [b > 2])"),
        ("WHEN sector = 5 FOR MORE THAN 5 MINUTES", "[sector = 5] for > 5 MINUTE"),
        (
            "WHEN sector = 5 WHERE kind = 'x' FOR 1 HOUR",
            "[sector = 5 WHERE kind = 'x'] for >= 1 HOUR",
        ),
        ("WHEN output INCREASED MONOTONICALLY FOR 2 HOURS", "output up 2 HOUR"),
        ("WHEN sum(amount) SINCE LAST EXECUTION > 5", "[SINCE EXECUTION (SUM(amount)) > 5]"),
        (
            "WHEN (a + b) * 2 > c AND x BETWEEN 1 AND 5",
            "All([(a + b) * 2 > c], [x BETWEEN 1 AND 5])",
        ),
        (
            "WHEN CASE WHEN a THEN b ELSE c END AND NOT d",
            "All([CASE WHEN a THEN b ELSE c END], not [d])",
        ),
        (
            "ON INSERT OR UPDATE OF stock (price) WHERE price > 5",
            "INSERT/UPDATE stock['price'] WHERE price > 5",
        ),
        ("SIGNAL failure", "signal failure"),
        ("WHEN OLD.price > NEW.price", "[OLD.price > NEW.price]"),
        ("WHEN a INCREASEBY 5 AND b DecreaseBy% 2.5", "All([INCBY(a, 5)], [DECBYP(b, 2.5)])"),
    ],
)
def test_our_layout(text: str, expected: str) -> None:
    assert written(read_trigger(text).condition) == expected


def test_while_and_when() -> None:
    assert read_trigger("WHILE a > 1").repeats
    assert not read_trigger("WHEN a > 1").repeats
    assert not read_trigger("a > 1").repeats


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("WHEN", "a condition is missing", "N"),
        ("WHEN a > 1 WHERE b = 2 WHERE c = 3", "a second WHERE", "WHERE"),
        ("WHEN a > AND b", "something is missing after >", ">"),
        ("WHEN a DECBYP", "something is missing after DECBYP", "DECBYP"),
        ("WHEN ON INSRT OF t", "INSRT is no event of a table", "INSRT"),
        ("WHEN a > 1 FOR 5 APPLES", "APPLES is no unit of time", "APPLES"),
        ("WHEN a > 1 WITHIN 5 MINUTES", "there is only one", "S"),
        ("WHEN a b", "b cannot stand here", "b"),
        ("WHEN (a > 1 OR b > 2", "something is missing after 2", "2"),
        ("WHEN ALL OF a", "( is missing", "a"),
        ("WHEN a = 'x", "a text or a comment is not closed", "WHEN a = 'x"),
        ("SIGNAL", "the name of the signal is missing", "L"),
        ("WHEN a > 1 THEN", "a condition is missing", "N"),
        ("WHEN " + "(" * 60 + "a > 1" + ")" * 60, "more than 50 parentheses", "("),
        ("WHEN a > " + "1" * (LONGEST + 1), "this trigger has", None),
    ],
)  # fmt: skip
def test_what_is_no_trigger(text: str, message: str, at: str | None) -> None:
    with pytest.raises(HarkenError) as caught:
        read_trigger(text)
    assert message in str(caught.value)
    span = caught.value.span
    assert span is not None
    assert at is None or text[span.start : span.end] == at

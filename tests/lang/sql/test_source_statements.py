"""Statements about sources are read as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError
from harken.lang.sql.parser import statements
from harken.lang.sql.source_statements import SourceWords, source_words, text_of

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).map(
    str.lower
)
VALUES = (
    st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e9, max_value=1e9)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"))
)


def words(text: str) -> SourceWords:
    (statement,) = statements(text)
    found = source_words(statement.node)
    assert found is not None
    return found


@given(
    name=NAMES,
    options=st.dictionaries(NAMES, VALUES, max_size=3),
    key=st.none() | st.lists(NAMES, min_size=1, max_size=2, unique=True).map(tuple),
    poll=st.none() | st.integers(1, 10**6) | st.sampled_from([0.5, 90.0]),
    alone=st.booleans(),
    in_lake=st.booleans(),
)
def test_what_is_written_reads_back(**given_words: object) -> None:
    made = SourceWords(verb="create", kind="json", **given_words)  # type: ignore[arg-type]
    assert words(text_of(made)) == made


def test_clauses_stand_in_any_order() -> None:
    one = words("create source A using HTML in lake poll every 20 minutes key (b, C) options (x 1)")
    other = words(
        "CREATE SOURCE a USING html OPTIONS (x = 1) KEY (b, c) POLL EVERY 20 MINUTE IN LAKE"
    )
    assert one == other
    assert (one.name, one.key, one.poll, one.in_lake) == ("a", ("b", "c"), 1200, True)


def test_the_value_of_an_option_may_be_a_raw_text() -> None:
    plain = words(r"CREATE SOURCE a USING text OPTIONS (pattern '(?P<n>\\d+)')")
    assert plain.options == {"pattern": r"(?P<n>\d+)"}
    assert words(r"CREATE SOURCE a USING text OPTIONS (pattern r'(?P<n>\d+)')") == plain


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("SHOW SOURCES", "show"),
        ("DESCRIBE SOURCE a", "describe"),
        ("DESC SOURCE a", "describe"),
        ("REFRESH SOURCE a", "refresh"),
        ("REFRESH SOURCE a CONFIRM", "refresh"),
        ("DROP SOURCE IF EXISTS a CASCADE", "drop"),
        ("ALTER SOURCE a SET (size 5, other DEFAULT)", "alter"),
        ("ALTER SOURCE a PAUSE", "alter"),
        ("ALTER SOURCE a RESUME", "alter"),
    ],
)
def test_each_statement_is_read(text: str, verb: str) -> None:
    assert words(text).verb == verb


def test_a_table_may_be_called_source() -> None:
    (statement,) = statements("DESCRIBE source")
    assert source_words(statement.node) is None


@pytest.mark.parametrize(
    ("text", "at", "hint"),
    [
        ("CREATE SOURCE", "SOURCE", "name"),
        ("CREATE SOURCE a", "a", "USING"),
        ("CREATE SOURCE a USING 'html'", "html", "kind"),
        ("CREATE SOURCE a USING html OPTOINS (x 1)", "OPTOINS", "OPTIONS"),
        ("CREATE SOURCE a USING html OPTIONS (x)", ")", "'"),
        ("CREATE SOURCE a USING html OPTIONS (x y)", "y", "x 'y'"),
        ("CREATE SOURCE a USING html OPTIONS (x 1, X 2)", "X", None),
        ("CREATE SOURCE a USING html POLL EVERY minute", "minute", "number"),
        ("CREATE SOURCE a USING html POLL EVERY 5", "5", "unit"),
        ("CREATE SOURCE a USING html POLL EVERY 0 SECONDS", "0", None),
        ("CREATE SOURCE a USING html KEY (a) KEY (b)", ")", None),
        ("CREATE SOURCE a USING html KEY ()", ")", "column"),
        ("ALTER SOURCE a", "a", "PAUSE"),
        ("DROP SOURCE a b", "b", None),
    ],
)
def test_errors_point_at_the_place(text: str, at: str, hint: str | None) -> None:
    with pytest.raises(HarkenError) as found:
        statements(text)
    assert found.value.code == "syntax"
    span = found.value.span
    assert span is not None
    assert text[span.start : span.end].strip("'") == at, found.value.report()
    assert hint is None or hint in (found.value.hint or ""), found.value.hint

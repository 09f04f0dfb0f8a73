"""Sources named by their hosts, as the thesis does: FROM www.nws.nova.gov."""

import pytest

import harken
from harken.intake.source_records import (
    Layout,
    Progress,
    SourceDefinition,
    SourceRecord,
    SourceRecords,
)


@pytest.fixture
def db() -> harken.Database:
    """A database with a relation that says it is read from a host."""
    db = harken.connect()
    db.sql("CREATE TABLE weather (location STRING PRIMARY KEY, sky STRING)")
    options = {"url": "http://www.nws.nova.gov/today.html"}
    definition = SourceDefinition("weather", "html", options)
    with db.transaction():
        records = SourceRecords(db.internals.connection.records)
        records.write(SourceRecord(definition, Layout((), (), (), ""), Progress()))
    return db


def test_a_trigger_and_a_query_name_a_host(db: harken.Database) -> None:
    db.sql(
        "Create CQ w as Query: SELECT sky FROM www.nws.nova.gov WHERE location like 'Savannah'; "
        "Trigger: FROM www.nws.nova.gov WHERE location like 'Savannah'"
    )
    db.sql("INSERT INTO weather VALUES ('Savannah', 'snow'), ('Rome', 'sun')")
    (done,) = db.run_due()
    assert done.inserted == [("snow",)]


def test_another_host_is_no_table(db: harken.Database) -> None:
    with pytest.raises(harken.HarkenError, match=r"there is no table or view www\.example\.org"):
        db.sql("CREATE CONTINUAL QUERY w AS SELECT 1 AS a TRIGGER FROM www.example.org")

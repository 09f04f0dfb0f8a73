"""Where LOCATION may point: the setting `lake_roots`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import harken
from harken.database.locations import Roots
from harken.settings import Settings


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two tables in a root, and one outside of it."""
    table = pa.table({"n": [1, 2]})
    for name in ("root/files", "secret"):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(table, tmp_path / name / "1.parquet")
    write_deltalake(tmp_path / "root/delta", table)
    write_deltalake(tmp_path / "hidden", table)
    return tmp_path


def created(location: object, *roots: object) -> str:
    """The code of the error, or how many rows there are."""
    settings = {"lake_roots": [str(root) for root in roots]}
    with harken.connect(settings=settings) as db:
        try:
            db.sql(f"CREATE TABLE t USING lake LOCATION '{location}'")
        except harken.HarkenError as error:
            return error.code
        return str(len(db.sql("SELECT * FROM t").rows))


def test_what_is_in_a_root_is_read(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = lake / "root"
    for place in (root / "files", root / "delta", f"file://{root}/files", root / "./x/../files"):
        assert created(place, "/nowhere", root) == "2", place
    assert created(root / "files", root / "files") == "2"
    monkeypatch.chdir(root)
    assert created("files", ".") == "2"
    assert created("../secret", ".") == "not-allowed"


def test_what_is_outside_is_not_looked_at(lake: Path) -> None:
    root = lake / "root"
    (root / "link").symlink_to(lake / "secret")
    (root / "loop").symlink_to(root / "loop")
    for place in (
        lake / "secret",
        lake / "hidden",
        lake / "nothing",
        lake,
        "/etc",
        root / "../secret",
        root / "link",
        root / "loop",
        f"{root}-beside",
        f"file://{lake}/secret",
        f"FILE://{lake}/hidden",
        f"file://elsewhere{root}/files",
        "s3://bucket/table",
        "https://127.0.0.1:1/table",
        "http://[::1",
        "://",
    ):
        assert created(place, root) == "not-allowed", place
        assert created(place) == "not-allowed", place


def test_the_error_is_the_same_whether_something_is_there(lake: Path) -> None:
    told = set()
    for name in ("secret", "hidden", "nothing", "secret/1.parquet"):
        with (
            harken.connect(settings={"lake_roots": [str(lake / "root")]}) as db,
            pytest.raises(harken.HarkenError) as caught,
        ):
            db.sql(f"CREATE TABLE t USING lake LOCATION '{lake / name}'")
        told.add((caught.value.message.replace(name, ""), caught.value.code, caught.value.hint))
    assert len(told) == 1


def test_a_link_inside_a_table_does_not_lead_out(lake: Path) -> None:
    root = lake / "root"
    os.symlink(lake / "secret/1.parquet", root / "files/2.parquet")
    assert created(root / "files", root) == "not-allowed"
    assert created(root / "files", root, lake / "secret") == "4"
    os.symlink(lake / "secret", root / "delta/part")
    assert created(root / "delta", root) == "not-allowed"


def test_a_log_does_not_name_files_outside(lake: Path) -> None:
    root = lake / "root"
    log = root / "delta/_delta_log/00000000000000000000.json"
    secret = (lake / "secret/1.parquet").as_posix()
    for path in ("../../secret/1.parquet", f"file://{secret}", secret):
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for each in actions:
            if "add" in each:
                each["add"]["path"] = path
        log.write_text("\n".join(map(json.dumps, actions)))
        assert created(root / "delta", root) in ("not-allowed", "cannot-open"), path


def test_addresses_elsewhere_are_allowed_one_by_one() -> None:
    roots = Roots(Settings({"lake_roots": "s3://bucket/sales:/data:gs://other"})["lake_roots"])
    for place in ("s3://bucket/sales", "s3://bucket/sales/2026/", "gs://other/x", "/data/x"):
        assert roots.locate(place) == place
    for place in (
        "s3://bucket/secret",
        "s3://bucket/salesman",
        "s3://bucket/sales/../secret",
        "s3://bucket/sales/%2e%2e/secret",
        "s3://user@bucket/sales",
        "gs://bucket/sales",
        "/dat",
    ):
        with pytest.raises(harken.HarkenError, match="not allowed here"):
            roots.locate(place)


def test_a_table_that_was_made_stays_where_other_roots_hold(lake: Path) -> None:
    with harken.connect(lake / "a.db") as db:
        db.sql(f"CREATE TABLE t USING lake LOCATION '{lake / 'secret'}'")
    with harken.connect(lake / "a.db", settings={"lake_roots": ()}) as db:
        assert len(db.sql("SELECT * FROM t").rows) == 2


def test_roots_are_chosen_when_a_database_is_opened() -> None:
    assert Settings()["lake_roots"] == ("/",)
    served = Settings(serving=True)
    assert served["lake_roots"] == ()
    with pytest.raises(harken.HarkenError, match="cannot be changed in a session"):
        served.set("lake_roots", "/")

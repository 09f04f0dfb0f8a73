"""A secret comes from the environment, a file or an encrypted record, and no text shows it."""

import os
from pathlib import Path
from typing import Any

import pytest

import harken
from harken.database.secrets import KEY_VARIABLE, Secrets, redacted
from harken.errors import SourceFault
from harken.settings import Settings


def secrets(db: harken.Database, file: str = "", **environment: str) -> Secrets:
    settings = Settings({"secrets_file": file})
    return Secrets(db.internals.connection.records, settings, environment)


def test_the_environment_comes_first_then_the_file_then_the_database(
    db: harken.Database, tmp_path: Path
) -> None:
    file = tmp_path / "secrets"
    file.write_text("# of the shop\nshop = from-file\nother=two = words\n")
    key = {KEY_VARIABLE: "the operator's"}
    with db.transaction():
        for name in ("shop", "other", "third"):
            secrets(db, **key).store(name, "from-database")
    here = secrets(db, str(file), HARKEN_SECRET_SHOP="from-environment", **key)
    assert here.resolve("secret:shop") == "from-environment"
    assert here.resolve("secret:other") == "two = words"
    assert here.resolve("secret:third") == "from-database"
    assert here.resolve("no secret") == "no secret"


def test_a_text_shows_no_secret_that_was_read(db: harken.Database) -> None:
    here = secrets(db, HARKEN_SECRET_SHOP="pa55word")
    here.resolve("secret:shop")
    assert here.redacted("login of ann with pa55word failed") == "login of ann with *** failed"
    assert redacted("x://a:b@c") == "x://a:***@c"


def test_the_file_of_the_database_does_not_hold_the_value(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with harken.connect(path) as db, db.transaction():
        secrets(db, **{KEY_VARIABLE: "k"}).store("shop", "very-secret-value")
    files = [each.read_bytes() for each in tmp_path.iterdir()]
    assert not any(b"very-secret-value" in each for each in files)


@pytest.mark.parametrize(
    ("key", "message"),
    [({}, "there is no key"), ({KEY_VARIABLE: "wrong"}, "cannot be decrypted with this key")],
)
def test_without_the_right_key_there_is_no_value(
    db: harken.Database, key: dict[str, str], message: str
) -> None:
    with db.transaction():
        secrets(db, **{KEY_VARIABLE: "right"}).store("shop", "value")
    with pytest.raises(SourceFault, match=message):
        secrets(db, **key).resolve("secret:shop")


def test_an_unknown_secret_says_what_to_set(db: harken.Database) -> None:
    with pytest.raises(SourceFault) as caught:
        secrets(db).resolve("secret:shop-db")
    assert caught.value.code == "missing-secret"
    assert "HARKEN_SECRET_SHOP_DB" in str(caught.value.hint)


def test_a_value_cannot_be_moved_to_another_name(db: harken.Database) -> None:
    here = secrets(db, **{KEY_VARIABLE: "k"})
    with db.transaction():
        here.store("one", "value")
    db.internals.connection.run("UPDATE harken_secrets SET name = 'two'")
    with pytest.raises(SourceFault, match="cannot be decrypted"):
        here.resolve("secret:two")


def test_the_session_reads_secrets_from_the_environment(
    db: harken.Database, monkeypatch: Any
) -> None:
    monkeypatch.setitem(os.environ, "HARKEN_SECRET_TOKEN", "abc")
    assert db.internals.runtime.secrets.resolve("secret:token") == "abc"

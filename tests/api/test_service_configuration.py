"""Settings and secrets kept in the file: used by whoever opens it, unless others are given."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken
from harken.errors import HarkenError


def test_a_kept_setting_is_used_at_once_and_after_opening(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with harken.connect(path) as db:
        db.configuration.keep({"smtp_host": "mail.example.org", "smtp_port": "2525"}, by="ann")
        assert db.settings["smtp_host"] == "mail.example.org"
        assert db.users.audit(1)[0].account == "ann"
    with harken.connect(path) as db:
        assert (db.settings["smtp_host"], db.settings["smtp_port"]) == ("mail.example.org", 2525)
        assert db.configuration.kept() == {"smtp_host": "mail.example.org", "smtp_port": 2525}
        db.configuration.keep({"smtp_host": None})
        assert db.settings["smtp_host"] == ""


def test_what_is_given_goes_before_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with harken.connect(path) as db:
        db.configuration.keep({"smtp_host": "kept.example.org"})
    with harken.connect(path, settings={"smtp_host": "given.example.org"}) as db:
        assert db.settings["smtp_host"] == "given.example.org"
        db.configuration.keep({"smtp_host": "other.example.org"})
        assert db.settings["smtp_host"] == "given.example.org"


@pytest.mark.parametrize(
    "wrong", [{"row_limit": 5}, {"smtp_port": "many"}, {"smtp_password": "pa55"}, {"nothing": 1}]
)
def test_a_wrong_setting_keeps_nothing(tmp_path: Path, wrong: dict[str, object]) -> None:
    with harken.connect(tmp_path / "a.db") as db:
        with pytest.raises(HarkenError):
            db.configuration.keep({"smtp_host": "mail.example.org", **wrong})
        assert db.configuration.kept() == {}


def test_a_secret_gets_a_key_beside_the_database(tmp_path: Path) -> None:
    path, key = tmp_path / "a.db", tmp_path / "a.db.key"
    with harken.connect(path) as db:
        assert db.configuration.store_secret("mail", "pa55word") == "secret:mail"
        assert key.stat().st_mode & 0o077 == 0
        assert "pa55word" not in key.read_text()
    with harken.connect(path) as db:
        assert db.internals.runtime.secrets.resolve("secret:mail") == "pa55word"
        kept = key.read_text()
        db.configuration.store_secret("other", "word")
        assert key.read_text() == kept
    key.unlink()
    with harken.connect(path) as db, pytest.raises(HarkenError, match="there is no key"):
        db.configuration.store_secret("third", "word")


def test_a_database_in_memory_has_no_key() -> None:
    with harken.connect() as db, pytest.raises(HarkenError, match="there is no key"):
        db.configuration.store_secret("mail", "pa55word")

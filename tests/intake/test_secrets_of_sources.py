"""A secret of a source is in no row, error, state, plan, log or file."""

from __future__ import annotations

from pathlib import Path

import pytest

import harken
from tests.harness.web_site import Answer, web_site

TOKEN = "T0PSECRET-9f31"


def test_a_secret_address_is_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, shown = tmp_path / "a.db", []
    with web_site() as site:
        site.pages["/page"] = Answer(b"<title>Prices</title><p>tea 3</p>")
        monkeypatch.setenv("HARKEN_SECRET_PAGE", site.url(f"/page?token={TOKEN}"))
        private = {"allow_private_addresses": True}
        with harken.connect(str(path), settings=private) as db:
            found = db.sources.check("html", url="secret:page")
            shown.append(str(found))
            db.source("page", "html", url="secret:page")
            db.source("now", "html", url="secret:page", mirror=False)
            shown.append(str(db.sql("SELECT * FROM page").rows))
            shown.append(str(db.sql("SELECT title, url FROM now").rows))
            assert db.sql("SELECT title FROM now").rows == [("Prices",)]
            shown.append(str(db.sql("EXPLAIN SELECT url FROM now")))
            site.pages["/page"] = Answer(TOKEN.encode() * 9, status=500)
            for text in ("REFRESH SOURCE page", "SELECT * FROM now"):
                with pytest.raises(harken.HarkenError) as refused:
                    db.sql(text)
                shown.append(refused.value.report())
            shown.append(str(db.sources.list()))
            shown.append(str(db.sources.describe("page")))
            shown.append(str(db.sql("SHOW SOURCES").rows))
            shown.append(str([each.text for each in db.definitions()]))
            shown.append(str(db.sql("SELECT * FROM source_state").rows))
    shown.append(caplog.text)
    assert any(f"token={TOKEN}" in asked for asked, _ in site.asked)
    assert [each for each in shown if TOKEN in each] == []
    assert TOKEN.encode() not in b"".join(each.read_bytes() for each in tmp_path.glob("a.db*"))

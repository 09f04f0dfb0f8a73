"""A session remembers what it read last, and never trusts that over what the file says."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import harken


class Stop(Exception):
    pass


def test_others_and_rollbacks_come_between(tmp_path: Path) -> None:
    page, file = tmp_path / "rows.json", str(tmp_path / "x.db")

    def write(*numbers: int) -> None:
        page.write_text(json.dumps([{"id": each} for each in numbers]))

    def refresh(db: harken.Database) -> list[int]:
        db.sql("REFRESH SOURCE s")
        return sorted(row[0] for row in db.sql("SELECT id FROM s").rows)

    write(1, 2)
    with harken.connect(file) as one, harken.connect(file) as other:
        one.source("s", "json", path=str(page), suspect_share=1)
        write(1, 2, 3)
        assert refresh(one) == [1, 2, 3]
        write(2, 3, 4)
        assert refresh(other) == [2, 3, 4]
        write(1, 2, 3)
        assert refresh(one) == [1, 2, 3]
        write(5, 6, 7)
        with suppress(Stop), one.transaction():
            assert refresh(one) == [5, 6, 7]
            raise Stop
        assert sorted(row[0] for row in one.sql("SELECT id FROM s").rows) == [1, 2, 3]
        write(1, 6, 7)
        assert refresh(one) == [1, 6, 7]
        assert refresh(other) == [1, 6, 7]

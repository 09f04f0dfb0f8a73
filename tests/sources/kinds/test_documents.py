"""The documents of a directory with their text."""

from __future__ import annotations

import os
from pathlib import Path

from tests.harness.outside import opened, refused, table_of


def test_documents_and_their_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("Java and Åse")
    (tmp_path / "sub/b.html").write_text("<p>Hello <b>you</b><script>x</script>")
    (tmp_path / "c.bin").write_bytes(b"\0\1\2")
    (tmp_path / "d.txt").write_bytes("Åse".encode("cp1252"))
    (tmp_path / ".hidden").write_text("x")
    source = opened("documents", directory=str(tmp_path), max_file=100)
    found = source.snapshot()
    assert found is not None
    assert (found.schema.key, found.part_column) == (("path",), "path")
    rows = {row["path"]: row for row in table_of(found).to_pylist()}
    assert {path: row["text"] for path, row in rows.items()} == {
        "a.txt": "Java and Åse",
        "c.bin": None,
        "d.txt": "Åse",
        "sub/b.html": "Hello you",
    }
    assert (rows["sub/b.html"]["name"], rows["c.bin"]["size"]) == ("b.html", 3)
    assert source.snapshot(found.position) is None
    # One is too large now, one is new, one has gone.
    (tmp_path / "a.txt").write_text("x" * 101)
    (tmp_path / "e.txt").write_text("new")
    (tmp_path / "c.bin").unlink()
    again = source.snapshot(found.position)
    assert again is not None
    assert list(again.set_aside) == ["a.txt"]
    assert table_of(again).column("path").to_pylist() == ["d.txt", "e.txt", "sub/b.html"]
    only = opened("documents", directory=str(tmp_path), pattern="*.html").snapshot()
    assert table_of(only).column("path").to_pylist() == ["sub/b.html"]


def test_an_empty_directory_is_empty_and_none_is_a_fault(tmp_path: Path) -> None:
    assert table_of(opened("documents", directory=str(tmp_path)).snapshot()).num_rows == 0
    with refused("source-down", "nowhere"):
        opened("documents", directory=f"{tmp_path}/nowhere").snapshot()


def test_links_lead_only_to_allowed_files(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "secret").write_text("x")
    (inside / "link").symlink_to(tmp_path / "secret")
    with refused("not-allowed"):
        opened(
            "documents", given={"allowed_roots": (str(inside),)}, directory=str(inside)
        ).snapshot()


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.txt").write_text("x")
    found = opened("documents", directory=str(tmp_path)).snapshot()
    assert table_of(found).column("path").to_pylist() == ["a.txt"]


def test_all_files_together_have_a_limit(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text("x" * 60)
    with refused("bad-option", "100 bytes", "max_bytes"):
        opened("documents", directory=str(tmp_path), max_bytes=100).snapshot()

"""`harken query`, and programs from standard input."""

from __future__ import annotations

from pathlib import Path

import harken
from tests.harness.commands import Command

QUERY = "SELECT name, price, day FROM item ORDER BY name"


def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.db"
    with harken.connect(file) as db:
        db.sql("CREATE TABLE item (name STRING, price DECIMAL(5, 2), day DATE)")
        db.sql("INSERT INTO item VALUES ('a|b', 1.5, '2026-01-31'), ('', 12, NULL)")
        db.sql("INSERT INTO item VALUES (?, NULL, NULL)", ["two\nlines, one"])
    return file


def test_a_table_is_aligned(command: Command, tmp_path: Path) -> None:
    done = command("query", QUERY, "--db", shop(tmp_path))
    assert done.out == (
        " name            | price | day\n"
        "-----------------+-------+------------\n"
        "                 | 12.00 | NULL\n"
        " a|b             |  1.50 | 2026-01-31\n"
        " two\\nlines, one |  NULL | NULL\n"
        "(3 rows)\n"
    )


def test_markdown_and_csv(command: Command, tmp_path: Path) -> None:
    file = shop(tmp_path)
    markdown = command("query", QUERY, "--db", file, "--format", "markdown").out
    assert markdown.splitlines()[:2] == ["| name | price | day |", "| --- | ---: | --- |"]
    assert "| a\\|b | 1.50 | 2026-01-31 |" in markdown
    csv = command("query", QUERY, "--db", file, "--format", "csv").out
    assert csv == 'name,price,day\n"",12.00,\na|b,1.50,2026-01-31\n"two\nlines, one",,\n'


def test_json_is_that_of_run(command: Command, tmp_path: Path) -> None:
    done = command(
        "query", "SELECT count(*) AS n FROM item", "--db", shop(tmp_path), "--format", "json"
    )
    assert done.results == [{"kind": "rows", "columns": ["n"], "types": ["integer"], "rows": [[3]]}]


def test_arrow_is_a_stream(command: Command, tmp_path: Path) -> None:
    import io

    import pyarrow.ipc

    from harken.cli.querying import rows_of
    from harken.cli.result_tables import arrow_bytes

    (result,) = rows_of(QUERY, str(shop(tmp_path)), None)
    table = pyarrow.ipc.open_stream(io.BytesIO(arrow_bytes(result))).read_all()
    assert table.column_names == ["name", "price", "day"]
    assert table.num_rows == 3


def test_a_query_changes_nothing(command: Command, tmp_path: Path) -> None:
    done = command("query", "DELETE FROM item", "--db", shop(tmp_path))
    assert (done.code, "[read-only]" in done.err) == (1, True)
    assert command("query", "SELECT 1", "--db", tmp_path / "none.db").code == 1


def test_a_query_comes_from_standard_input(command: Command) -> None:
    assert command("query", "-", "--format", "csv", stdin=b"SELECT 1 AS a").out == "a\n1\n"
    assert command("query", "-", stdin=b"SELECT x").err.startswith("<stdin>:1:8: [unknown-column]")


def test_standard_input_is_run_in_a_language(command: Command) -> None:
    sql = b"CREATE TABLE t (a INT); INSERT INTO t VALUES (1); SELECT * FROM t;"
    assert command("run", "-", "--language", "sql", stdin=sql).out == "<1>\n"
    assert "--language sql" in command("run", "-", stdin=sql).err


def test_modules_lie_beside_the_script(command: Command, tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("def post(text):\n    print('posted', text)\n")
    script = tmp_path / "a.amosql"
    script.write_text(
        'create function post(charstring t) -> boolean as foreign "beside_it:post"; post("x");'
    )
    assert command("run", script).out == "posted x\n"

"""Each page answers, says what belongs there, and shows every value as text."""

from __future__ import annotations

import http.client
from urllib.parse import quote

import pytest

from harken.console.rendering import asset
from tests.harness.patience import PATIENCE
from tests.server.serving import Served

PAGES = {
    "/": "All is well",
    "/data": "by_supplier",
    "/data?q=zzz": "Nothing matches",
    "/data/stock": "A table with 3 columns, keyed by item",
    "/data/low?tab=how": "low is a view",
    "/data/low?tab=lineage": "low reads stock and is read by nothing",
    "/data/low?tab=changes": "No history is kept",
    "/data/stock?where=quantity+%3C": "class=&#34;problem&#34;",
    "/data/by_supplier": "A materialized view",
    "/query": "Ctrl",
    "/query?language=datalog": "<option value=&#34;datalog&#34; selected>",
    "/queries": "No continual queries yet",
    "/sources": "No sources yet",
    "/new/query": "New continual query",
    "/new/query?over=stock": "SELECT * FROM stock",
    "/rules": "order_more",
    "/rules/order_more": "strict, deferred rule",
    "/operator": "Stored for views",
    "/operator?tab=messages": "No messages are waiting",
    "/operator?tab=settings": "max_body_bytes",
}
MISSING = ("/data/nothing", "/rules/nothing", "/static/nothing.js", "/static/..%2froutes.py")


def fetch(served: Served, path: str) -> tuple[int, str, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, answer.headers


def run(served: Served, text: str, language: str = "sql") -> str:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    body = f'{{"language": "{language}", "text": {quoted(text)}}}'
    connection.request("POST", "/query", body, {"content-type": "application/json"})
    found = connection.getresponse().read().decode()
    connection.close()
    return found


def quoted(text: str) -> str:
    import json

    return json.dumps(text)


def test_every_page_says_what_belongs_there(served: Served) -> None:
    for path, expected in PAGES.items():
        status, text, headers = fetch(served, path)
        assert status == 200, path
        assert expected.replace("&#34;", '"') in text, path
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "<img" not in text, path
    for path in MISSING:
        assert fetch(served, path)[0] == 404, path


def test_assets_may_be_kept_and_name_their_text(served: Served) -> None:
    status, text, headers = fetch(served, asset("console.js"))
    assert status == 200
    assert "immutable" in headers["cache-control"]
    assert text.startswith("//")


def test_a_name_may_hold_anything(served: Served) -> None:
    name = "a/b?<script>alert(1)</script> %41"
    served.client.sql(f"CREATE TABLE `{name}` (n INT)")
    status, text, _ = fetch(served, f"/data/{quote(name, safe='')}")
    assert status == 200
    assert "<script>alert" not in text
    assert "<script>alert" not in fetch(served, f"/data?q={quote(name)}")[1]


def test_a_query_reads_a_change_writes_and_an_error_says_where(served: Served) -> None:
    assert '<td class="n">50</td>' in run(served, "SELECT quantity FROM stock WHERE item = 'ink'")
    assert "1 row changed" in run(served, "UPDATE stock SET quantity = 1 WHERE item = 'ink'")
    assert served.client.sql("SELECT quantity FROM stock WHERE item = 'ink'") == [(1,)]
    wrong = run(served, "SELECT *\nFORM stock")
    assert "line 2, column 1" in wrong
    assert "did you mean FROM?" in wrong
    assert "leaves a transaction open" in run(served, "BEGIN; DELETE FROM stock")
    assert served.client.sql("SELECT count(*) AS n FROM stock") == [(3,)]
    assert "order_more" in run(served, "select name(r) for each rule r;", "amosql")


@pytest.mark.parametrize("format", ["csv", "json", "arrow", "parquet"])
def test_rows_are_exported(served: Served, format: str) -> None:
    text = quote("SELECT item, quantity FROM stock")
    status, _, headers = fetch_bytes(served, f"/query/export?format={format}&text={text}")
    assert status == 200
    assert headers["content-disposition"] == f'attachment; filename="rows.{format}"'


def test_an_export_cannot_write(served: Served) -> None:
    status, body, _ = fetch_bytes(served, f"/query/export?text={quote('DELETE FROM stock')}")
    assert status >= 400
    assert b"read-only" in body
    assert served.client.sql("SELECT count(*) AS n FROM stock") == [(3,)]


def fetch_bytes(served: Served, path: str) -> tuple[int, bytes, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body, answer.headers

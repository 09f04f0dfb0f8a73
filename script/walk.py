"""One of the five walks of docs/architecture.md, traced: prints the files and functions called.

Threads are traced one by one, and follow each other in the order in which they began to work.
"""

from __future__ import annotations

import inspect
import json
import socket
import sys
import tempfile
import threading
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import harken

PACKAGE = str(Path(harken.__file__).parent) + "/"
calls: dict[int, list[tuple[str, str]]] = {}


def note(frame: FrameType, event: str, _: Any) -> None:
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(PACKAGE):
        return
    # Modules and bodies of classes have no locals of their own.
    if code.co_flags & inspect.CO_NEWLOCALS and not code.co_name.startswith("<"):
        file = code.co_filename[len(PACKAGE) :]
        calls.setdefault(threading.get_ident(), []).append((file, code.co_qualname))


def trace() -> None:
    threading.setprofile(note)
    sys.setprofile(note)


def stop() -> None:
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]


STOCK = """
create type item;
create function quantity(item) -> integer;
create function least(item) -> integer;
create function ordered(item) -> integer;
create item instances :a, :b;
set quantity(:a) = 10; set least(:a) = 5; set quantity(:b) = 10; set least(:b) = 5;
commit;
"""
RULE = """
create rule order_more() as
    when for each item i where quantity(i) < least(i) do set ordered(i) = 10;
activate order_more();
commit;
"""
EDGES = """
CREATE TABLE edge (a INT, b INT, PRIMARY KEY (a, b));
INSERT INTO edge VALUES (1, 2), (2, 3);
"""
PATHS = """
CREATE VIEW path AS WITH RECURSIVE p AS (
    SELECT a, b FROM edge UNION SELECT p.a, edge.b FROM p JOIN edge ON edge.a = p.b
) SELECT a, b FROM p
"""


def rule() -> None:
    db = harken.connect()
    db.amosql(STOCK)
    trace()
    db.amosql(RULE)
    db.amosql("set quantity(:a) = 1; commit;")
    stop()
    assert db.amosql("select ordered(i) for each item i;").rows == [(10,)]


def materialised_view() -> None:
    db = harken.connect()
    db.sql("CREATE TABLE sale (id INT PRIMARY KEY, city STRING, amount INT)")
    db.sql("INSERT INTO sale VALUES (1, 'Oslo', 3), (2, 'Rome', 4)")
    trace()
    db.sql("CREATE MATERIALIZED VIEW big AS SELECT id, city FROM sale WHERE amount > 3")
    db.sql("UPDATE sale SET amount = 5 WHERE id = 1")
    stop()
    assert len(db.sql("SELECT * FROM big").rows) == 2


def recursive_view() -> None:
    db = harken.connect()
    db.sql(EDGES)
    trace()
    db.sql(PATHS)
    monitor = db.monitor("path")
    db.sql("INSERT INTO edge VALUES (3, 4)")
    changes = monitor.changes()
    stop()
    assert sum(len(each.plus) for each in changes) == 3


def lake_step() -> None:
    import pyarrow as pa

    db = harken.connect(str(Path(tempfile.mkdtemp()) / "stock.db"))
    rows = pa.table({"item": [1, 2], "quantity": [10, 10]})
    place = db_lake(db, rows)
    monitor = db.monitor("quantity")
    place()
    trace()
    db.step()
    changes = monitor.changes()
    stop()
    assert changes


def db_lake(db: harken.Database, rows: Any) -> Any:
    import pyarrow as pa
    from deltalake import write_deltalake

    path = Path(tempfile.mkdtemp()) / "quantity"
    write_deltalake(path, rows, configuration={"delta.enableChangeDataFeed": "true"})
    db.lake("quantity", path, key=["item"])
    more = pa.table({"item": [3], "quantity": [1]})
    return lambda: write_deltalake(path, more, mode="append")


def event_to_a_browser() -> None:
    import http.client

    from harken.server.service import Service

    path = str(Path(tempfile.mkdtemp()) / "stock.db")
    db = harken.connect(path)
    db.sql("CREATE TABLE stock (item STRING PRIMARY KEY, quantity INT)")
    db.sql("CREATE VIEW low AS SELECT item FROM stock WHERE quantity < 10")
    service = Service(path)
    server = make_server(service)
    listening = socket.create_server(("127.0.0.1", 0))
    trace()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1])
    connection.request("GET", "/api/v1/views/low/events")
    answer = connection.getresponse()
    while not answer.readline().startswith(b"data:"):
        pass
    db.sql("INSERT INTO stock VALUES ('pen', 3)")
    while not answer.readline().startswith(b"data:"):
        pass
    stop()
    answer.close()
    connection.close()
    server.should_exit = True
    thread.join()


def make_server(service: Any) -> Any:
    try:
        from harken.server.server_process import make_server as made
    except ImportError:
        from harken.server.run import make_server as made
    return made(service, None)


WALKS = {
    "rule": rule,
    "materialised view": materialised_view,
    "recursive view": recursive_view,
    "lake step": lake_step,
    "event to a browser": event_to_a_browser,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    WALKS[sys.argv[1]]()
    print(json.dumps([call for each in calls.values() for call in each]))

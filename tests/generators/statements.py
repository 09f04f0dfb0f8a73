"""Statements of the three languages, all of them right, over the tables and relations of `SCHEMA`.

They are what tests damage: cut off, leave a word out of, put a strange character into.
"""

from __future__ import annotations

SQL_SCHEMA = """
CREATE TABLE t (a INT, b STRING, m DECIMAL(9, 2), d DATE, f BOOLEAN);
CREATE TABLE u (a INT PRIMARY KEY, c STRING);
INSERT INTO t VALUES (1, 'x', 1.50, DATE '2024-02-29', true), (2, 'y', NULL, NULL, false);
INSERT INTO u VALUES (1, 'one'), (3, 'three');
CREATE TABLE alone (x INT);
CREATE VIEW w AS SELECT a, count(*) AS n FROM t GROUP BY a;
CREATE MATERIALIZED VIEW kept AS SELECT c FROM u
"""
SQL = (
    "CREATE VIEW low (x) AS SELECT a FROM t WHERE a < 5",
    "CREATE OR REPLACE VIEW w AS SELECT a, 1 AS n FROM t",
    "CREATE MATERIALIZED VIEW m AS SELECT t.b, sum(t.a) AS s FROM t JOIN u ON t.a = u.a "
    "GROUP BY t.b",
    "CREATE TEMPORARY VIEW tmp AS SELECT 1 AS one",
    "CREATE TABLE z (k INT PRIMARY KEY, x STRING NOT NULL DEFAULT 'no', CHECK (k > 0))",
    "CREATE TABLE IF NOT EXISTS z (k INT, x INT, PRIMARY KEY (k), UNIQUE (x), "
    "FOREIGN KEY (k) REFERENCES u (a))",
    "CREATE TABLE z AS SELECT a, b FROM t",
    "CREATE TABLE z (k INT, x INT) KEY (k)",
    "ALTER TABLE t ADD COLUMN x INT",
    "ALTER TABLE t DROP COLUMN b",
    "ALTER TABLE t RENAME COLUMN b TO bb",
    "ALTER TABLE alone RENAME TO other",
    "ALTER TABLE t ALTER COLUMN a SET NOT NULL",
    "DROP VIEW IF EXISTS w",
    "DROP TABLE alone",
    "TRUNCATE TABLE t",
    "INSERT INTO t (a, b) VALUES (5, 'v'), (6, 'w')",
    "INSERT INTO u SELECT a + 10, b FROM t",
    "INSERT INTO u VALUES (1, 'uno') ON CONFLICT (a) DO UPDATE SET c = excluded.c WHERE u.a > 0",
    "INSERT INTO u VALUES (1, 'uno') ON CONFLICT DO NOTHING",
    "UPDATE t SET a = a + 1, b = upper(b) WHERE a IN (1, 2)",
    "DELETE FROM t WHERE a BETWEEN 1 AND 2 OR b IS NULL",
    "MERGE INTO u USING t ON u.a = t.a WHEN MATCHED AND t.a > 5 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET c = t.b WHEN NOT MATCHED THEN INSERT (a, c) VALUES (t.a, t.b)",
    "MERGE INTO u USING (SELECT a, b AS c FROM t) AS s ON u.a = s.a WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED THEN INSERT *",
    "SELECT DISTINCT a AS x, t.b, m * 2 FROM t WHERE NOT (a = 1 AND b LIKE 'x%') ORDER BY x DESC, "
    "b ASC NULLS LAST LIMIT 10 OFFSET 1",
    "SELECT b, count(*), sum(a) FILTER (WHERE a > 0), max(DISTINCT m) FROM t GROUP BY b "
    "HAVING count(*) > 0",
    "SELECT * FROM t LEFT JOIN u USING (a) CROSS JOIN w",
    "SELECT * FROM t NATURAL JOIN u, w",
    "SELECT t.*, u.c FROM t FULL OUTER JOIN u ON t.a = u.a AND t.b <> u.c",
    "SELECT a FROM t UNION ALL SELECT a FROM u EXCEPT SELECT 3 INTERSECT SELECT 4",
    "SELECT CASE WHEN a = 1 THEN 'one' ELSE 'many' END, CASE a WHEN 1 THEN 2 END FROM t",
    "SELECT CAST(a AS STRING), TRY_CAST(b AS INT), a::BIGINT, DATE '2024-01-01' + INTERVAL 1 DAY, "
    "INTERVAL '2' HOUR + TIMESTAMP '2024-01-01 10:00:00' FROM t",
    "SELECT a, rank() OVER (PARTITION BY b ORDER BY a), lag(a, 1, 0) OVER w, sum(a) OVER "
    "(ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WINDOW w AS (ORDER BY a DESC)",
    "SELECT a FROM t WHERE a > ANY (SELECT a FROM u) AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
    "SELECT a, (SELECT max(c) FROM u WHERE u.a = t.a) AS c FROM t WHERE a NOT IN (SELECT a FROM u)",
    "WITH one AS (SELECT a FROM t), two (x) AS (SELECT a FROM one) SELECT * FROM one, two",
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
    "SELECT b, a, grouping(b) FROM t GROUP BY GROUPING SETS ((b, a), (b), ())",
    "SELECT b, count(*) FROM t GROUP BY ROLLUP (b, a) ORDER BY ALL",
    "SELECT coalesce(b, 'none'), concat(b, '-', a), substring(b FROM 1 FOR 2), "
    "trim(BOTH ' ' FROM b), extract(YEAR FROM d), if(a > 1, 'y', 'n') FROM t",
    "SELECT a IS NOT DISTINCT FROM 1, f IS UNKNOWN, f IS NOT TRUE, b IS NULL, -a % 2, "
    "~a & 3 FROM t",
    "SELECT * EXCEPT (b, m) FROM t",
    "SELECT x.one FROM (VALUES (1, 'p'), (2, 'q')) AS x (one, two) FETCH FIRST 1 ROWS ONLY",
    "VALUES (1, 2), (3, 4)",
    "FROM t SELECT a WHERE a = 1",
    "TABLE u",
    "SELECT id FROM range(0, 10, 2) QUALIFY row_number() OVER (ORDER BY id) = 1",
    "EXPLAIN SELECT * FROM t",
    "SHOW TABLES",
    "SHOW COLUMNS IN t",
    "DESCRIBE t",
    "REFRESH MATERIALIZED VIEW kept",
    "BEGIN; INSERT INTO u VALUES (9, 'nine'); COMMIT",
    "START TRANSACTION; DELETE FROM u; ROLLBACK",
)
"""Each is run on its own, in a database with `SQL_SCHEMA`; most are ordinary, some only ours."""

AMOSQL_SCHEMA = """
create type item properties (name charstring, quantity integer, threshold integer);
create type shoe subtype of item;
create function likes(item) -> bag of item as stored;
create item (name, quantity, threshold) instances :a ("a", 5, 10), :b ("b", 20, 10);
commit;
"""
AMOSQL = (
    "create type sub subtype of item properties (size integer);",
    "create function low() -> item as select i for each item i where quantity(i) < threshold(i);",
    "create function double(integer x) -> integer as select x * 2;",
    "create function stored_one(item, integer) -> charstring as stored;",
    'create item (name, quantity) instances :c ("c", 1);',
    "set quantity(:a) = quantity(:b) + 2 * 3;",
    "add likes(:a) = :b;",
    "remove likes(:a) = :b;",
    'select name(i), quantity(i) for each item i where quantity(i) > 3 and not name(i) = "z";',
    "select i for each item i where quantity(i) < 7 or threshold(i) >= 10;",
    "select count(select i for each item i);",
    "create rule order_it() as when for each item i where quantity(i) < threshold(i) "
    "do print(name(i), quantity(i));",
    "create function fill(item i, integer n) -> boolean as begin declare integer x; "
    "set x = n; set quantity(i) = x; return true; end;",
    "for each item i where quantity(i) < 10 begin set quantity(i) = 10; print(i); end;",
    "delete :b;",
    "delete type shoe;",
    "add shoe to :a;",
    "print(quantity(:a), 1.5e3, 'text', true);",
    "commit;",
    "rollback;",
)

DATALOG_SCHEMA = '.decl e(x: number, y: number) e(1, 2). e(2, 3). .decl s(x: symbol) s("a").'
DATALOG = (
    ".decl p(x: number, y: number) p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z). .output p",
    ".decl n(x: number) n(x) :- e(x, _), !e(_, x), (x > 0 ; x = -1). ?- n(x), x < 5.",
    ".decl c(n: number, f: float) c(n, m) :- n = count : { e(_, _) }, m = mean x : { e(x, _) }.",
    '.decl t(x: symbol, n: unsigned) t(cat(x, "!"), 3u) :- s(x), match("a.*", x). .printsize t',
    ".type Id <: number .decl i(x: Id) i(as(x, Id)) :- e(x, _). .output i(IO=stdout)",
    ".type Both = number | number",
    ".comp C<T> { .decl k(x: T) k(x) :- e(x, _). } .init cc = C<number> ?- cc.k(x).",
    "+e(7, 8). -e(1, 2). .commit",
    ".monitor e +e(5, 6). .commit",
    ".decl b() b() :- e(1, 2). .limitsize b(n=1)",
    ".decl q(x: number) q(x) :- e(x, y), y = 2 * x + 0x1f - 3 band 1 % 5. ?- q(x).",
    "?- e(x, y), x = min z : { e(z, _) }, y = max z : { e(_, z), z < 10 }.",
)

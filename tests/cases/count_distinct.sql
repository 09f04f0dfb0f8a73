/* Count distinct. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT k, count(DISTINCT x) AS n, sum(DISTINCT x) AS s FROM a GROUP BY k;
CREATE MATERIALIZED VIEW kept AS
  SELECT k, count(DISTINCT x) AS n, sum(DISTINCT x) AS s FROM a GROUP BY k;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (1, 1), (1, 2), (1, NULL);
COMMIT;
/*=
+v(1, 2, 3)
+kept(1, 2, 3)
*/
SELECT * FROM v;
/*= <1, 2, 3> */

BEGIN;
DELETE FROM a WHERE x = 2;
COMMIT;
/*=
+v(1, 1, 1)
-v(1, 2, 3)
+kept(1, 1, 1)
-kept(1, 2, 3)
*/
SELECT * FROM v;
/*= <1, 1, 1> */

BEGIN;
DELETE FROM a WHERE x = 1;
COMMIT;
/*=
+v(1, 0, NULL)
-v(1, 1, 1)
+kept(1, 0, NULL)
-kept(1, 1, 1)
*/
SELECT * FROM v;
/*= <1, 0, NULL> */

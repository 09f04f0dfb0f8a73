/* The extreme row goes. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT k, min(x) AS l, max(x) AS m FROM a GROUP BY k;
CREATE MATERIALIZED VIEW kept AS
  SELECT k, min(x) AS l, max(x) AS m FROM a GROUP BY k;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (1, 5), (1, 9), (1, NULL);
COMMIT;
/*=
+v(1, 1, 9)
+kept(1, 1, 9)
*/
SELECT * FROM v;
/*= <1, 1, 9> */

BEGIN;
DELETE FROM a WHERE x = 9;
COMMIT;
/*=
+v(1, 1, 5)
-v(1, 1, 9)
+kept(1, 1, 5)
-kept(1, 1, 9)
*/
SELECT * FROM v;
/*= <1, 1, 5> */

BEGIN;
DELETE FROM a WHERE x < 6;
COMMIT;
/*=
+v(1, NULL, NULL)
-v(1, 1, 5)
+kept(1, NULL, NULL)
-kept(1, 1, 5)
*/
SELECT * FROM v;
/*= <1, NULL, NULL> */

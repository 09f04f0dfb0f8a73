/* An aggregate over nothing. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT count(*) AS n, count(x) AS c, sum(x) AS s, min(x) AS l, avg(x) AS m FROM a;
CREATE MATERIALIZED VIEW kept AS
  SELECT count(*) AS n, count(x) AS c, sum(x) AS s, min(x) AS l, avg(x) AS m FROM a;
/*~ monitor v, kept */

BEGIN;
INSERT INTO b VALUES (1, 1);
COMMIT;
/*= */
SELECT * FROM v;
/*= <0, 0, NULL, NULL, NULL> */

BEGIN;
INSERT INTO a VALUES (1, NULL);
COMMIT;
/*=
+v(1, 0, NULL, NULL, NULL)
-v(0, 0, NULL, NULL, NULL)
+kept(1, 0, NULL, NULL, NULL)
-kept(0, 0, NULL, NULL, NULL)
*/
SELECT * FROM v;
/*= <1, 0, NULL, NULL, NULL> */

BEGIN;
INSERT INTO a VALUES (1, 4);
COMMIT;
/*=
+v(2, 1, 4, 4, 4)
-v(1, 0, NULL, NULL, NULL)
+kept(2, 1, 4, 4, 4)
-kept(1, 0, NULL, NULL, NULL)
*/
SELECT * FROM v;
/*= <2, 1, 4, 4, 4> */

BEGIN;
DELETE FROM a;
COMMIT;
/*=
+v(0, 0, NULL, NULL, NULL)
-v(2, 1, 4, 4, 4)
+kept(0, 0, NULL, NULL, NULL)
-kept(2, 1, 4, 4, 4)
*/
SELECT * FROM v;
/*= <0, 0, NULL, NULL, NULL> */

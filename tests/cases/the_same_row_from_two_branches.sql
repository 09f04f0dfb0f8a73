/* The same row from two branches. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT k FROM a UNION SELECT k FROM b;
CREATE MATERIALIZED VIEW kept AS
  SELECT k FROM a UNION SELECT k FROM b;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1);
INSERT INTO b VALUES (1, 1);
COMMIT;
/*=
+v(1)
+kept(1)
*/
SELECT * FROM v;
/*= <1> */

BEGIN;
DELETE FROM a;
COMMIT;
/*= */
SELECT * FROM v;
/*= <1> */

BEGIN;
DELETE FROM b;
INSERT INTO a VALUES (NULL, 1);
COMMIT;
/*=
+v(NULL)
-v(1)
+kept(NULL)
-kept(1)
*/
SELECT * FROM v;
/*= <NULL> */

/* Inserted and deleted in one transaction. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT count(*) AS n FROM a;
CREATE MATERIALIZED VIEW kept AS
  SELECT count(*) AS n FROM a;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1);
DELETE FROM a;
COMMIT;
/*= */
SELECT * FROM v;
/*= <0> */

BEGIN;
INSERT INTO a VALUES (1, 1);
COMMIT;
/*=
+v(1)
-v(0)
+kept(1)
-kept(0)
*/
SELECT * FROM v;
/*= <1> */

BEGIN;
DELETE FROM a;
INSERT INTO a VALUES (1, 1);
COMMIT;
/*= */
SELECT * FROM v;
/*= <1> */

/* Three inputs of a join change in one transaction. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE TABLE c (k INT, z INT);
CREATE VIEW v AS
  SELECT x, y, z FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k;
CREATE MATERIALIZED VIEW kept AS
  SELECT x, y, z FROM a JOIN b ON a.k = b.k JOIN c ON b.k = c.k;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1);
INSERT INTO b VALUES (1, 2);
INSERT INTO c VALUES (1, 3);
COMMIT;
/*=
+v(1, 2, 3)
+kept(1, 2, 3)
*/
SELECT * FROM v;
/*= <1, 2, 3> */

BEGIN;
UPDATE a SET x = 10;
UPDATE b SET y = 20;
UPDATE c SET z = 30;
COMMIT;
/*=
+v(10, 20, 30)
-v(1, 2, 3)
+kept(10, 20, 30)
-kept(1, 2, 3)
*/
SELECT * FROM v;
/*= <10, 20, 30> */

BEGIN;
DELETE FROM a;
DELETE FROM b;
DELETE FROM c;
COMMIT;
/*=
-v(10, 20, 30)
-kept(10, 20, 30)
*/
SELECT * FROM v;
/*= */

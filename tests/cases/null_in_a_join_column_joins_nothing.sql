/* NULL in a join column joins nothing. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT a.x, b.y FROM a JOIN b ON a.k = b.k;
CREATE MATERIALIZED VIEW kept AS
  SELECT a.x, b.y FROM a JOIN b ON a.k = b.k;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (NULL, 1), (1, 2);
INSERT INTO b VALUES (NULL, 3);
COMMIT;
/*= */
SELECT * FROM v;
/*= */

BEGIN;
INSERT INTO b VALUES (1, 4);
COMMIT;
/*=
+v(2, 4)
+kept(2, 4)
*/
SELECT * FROM v;
/*= <2, 4> */

BEGIN;
UPDATE a SET k = NULL;
COMMIT;
/*=
-v(2, 4)
-kept(2, 4)
*/
SELECT * FROM v;
/*= */

BEGIN;
UPDATE a SET k = 1 WHERE x = 1;
COMMIT;
/*=
+v(1, 4)
+kept(1, 4)
*/
SELECT * FROM v;
/*= <1, 4> */

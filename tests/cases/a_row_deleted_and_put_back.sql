/* A row deleted and put back. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT PRIMARY KEY, x INT);
CREATE VIEW v AS
  SELECT DISTINCT x FROM a;
CREATE MATERIALIZED VIEW kept AS
  SELECT DISTINCT x FROM a;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (2, 1);
COMMIT;
/*=
+v(1)
+kept(1)
*/
SELECT * FROM v;
/*= <1> */

BEGIN;
DELETE FROM a WHERE k = 1;
COMMIT;
/*= */
SELECT * FROM v;
/*= <1> */

BEGIN;
INSERT INTO a VALUES (1, 1);
DELETE FROM a WHERE k = 2;
COMMIT;
/*= */
SELECT * FROM v;
/*= <1> */

BEGIN;
DELETE FROM a;
INSERT INTO a VALUES (2, NULL);
COMMIT;
/*=
+v(NULL)
-v(1)
+kept(NULL)
-kept(1)
*/
SELECT * FROM v;
/*= <NULL> */

/* NOT EXISTS. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k);
CREATE MATERIALIZED VIEW kept AS
  SELECT x FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k);
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (NULL, 2);
COMMIT;
/*=
+v(1)
+v(2)
+kept(1)
+kept(2)
*/
SELECT * FROM v;
/*=
<1>
<2>
*/

BEGIN;
INSERT INTO b VALUES (1, 1), (1, 1), (NULL, 1);
COMMIT;
/*=
-v(1)
-kept(1)
*/
SELECT * FROM v;
/*= <2> */

BEGIN;
DELETE FROM b WHERE k = 1;
COMMIT;
/*=
+v(1)
+kept(1)
*/
SELECT * FROM v;
/*=
<1>
<2>
*/

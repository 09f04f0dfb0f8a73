/* NOT IN, with NULLs. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT x FROM a WHERE k NOT IN (SELECT k FROM b);
CREATE MATERIALIZED VIEW kept AS
  SELECT x FROM a WHERE k NOT IN (SELECT k FROM b);
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (NULL, 2), (3, 3);
COMMIT;
/*=
+v(1)
+v(2)
+v(3)
+kept(1)
+kept(2)
+kept(3)
*/
SELECT * FROM v;
/*=
<1>
<2>
<3>
*/

BEGIN;
INSERT INTO b VALUES (1, 1);
COMMIT;
/*=
-v(1)
-v(2)
-kept(1)
-kept(2)
*/
SELECT * FROM v;
/*= <3> */

BEGIN;
INSERT INTO b VALUES (NULL, 1);
COMMIT;
/*=
-v(3)
-kept(3)
*/
SELECT * FROM v;
/*= */

BEGIN;
DELETE FROM b WHERE k IS NULL;
COMMIT;
/*=
+v(3)
+kept(3)
*/
SELECT * FROM v;
/*= <3> */

BEGIN;
DELETE FROM b;
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
<3>
*/

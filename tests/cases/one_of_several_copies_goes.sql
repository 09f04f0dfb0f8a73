/* One of several copies goes. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT a.k, b.y FROM a, b WHERE a.k = b.k;
CREATE MATERIALIZED VIEW kept AS
  SELECT a.k, b.y FROM a, b WHERE a.k = b.k;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (1, 1), (1, 2);
INSERT INTO b VALUES (1, 7), (1, 7);
COMMIT;
/*=
+v(1, 7)
+v(1, 7)
+v(1, 7)
+v(1, 7)
+v(1, 7)
+v(1, 7)
+kept(1, 7)
+kept(1, 7)
+kept(1, 7)
+kept(1, 7)
+kept(1, 7)
+kept(1, 7)
*/
SELECT * FROM v;
/*=
<1, 7>
<1, 7>
<1, 7>
<1, 7>
<1, 7>
<1, 7>
*/

BEGIN;
UPDATE a SET k = 2 WHERE x = 2;
COMMIT;
/*=
-v(1, 7)
-v(1, 7)
-kept(1, 7)
-kept(1, 7)
*/
SELECT * FROM v;
/*=
<1, 7>
<1, 7>
<1, 7>
<1, 7>
*/

BEGIN;
DELETE FROM b;
INSERT INTO b VALUES (1, 7);
COMMIT;
/*=
-v(1, 7)
-v(1, 7)
-kept(1, 7)
-kept(1, 7)
*/
SELECT * FROM v;
/*=
<1, 7>
<1, 7>
*/

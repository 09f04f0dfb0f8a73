/* A row leaves the top. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT k, x FROM a ORDER BY x DESC LIMIT 2;
CREATE MATERIALIZED VIEW kept AS
  SELECT k, x FROM a ORDER BY x DESC LIMIT 2;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 5), (2, 7), (3, 6), (4, NULL);
COMMIT;
/*=
+v(2, 7)
+v(3, 6)
+kept(2, 7)
+kept(3, 6)
*/
SELECT * FROM v;
/*=
<2, 7>
<3, 6>
*/

BEGIN;
DELETE FROM a WHERE k = 2;
COMMIT;
/*=
+v(1, 5)
-v(2, 7)
+kept(1, 5)
-kept(2, 7)
*/
SELECT * FROM v;
/*=
<1, 5>
<3, 6>
*/

BEGIN;
INSERT INTO a VALUES (5, 9), (5, 9), (5, 9);
COMMIT;
/*=
+v(5, 9)
+v(5, 9)
-v(1, 5)
-v(3, 6)
+kept(5, 9)
+kept(5, 9)
-kept(1, 5)
-kept(3, 6)
*/
SELECT * FROM v;
/*=
<5, 9>
<5, 9>
*/

BEGIN;
DELETE FROM a WHERE x > 5;
COMMIT;
/*=
+v(1, 5)
+v(4, NULL)
-v(5, 9)
-v(5, 9)
+kept(1, 5)
+kept(4, NULL)
-kept(5, 9)
-kept(5, 9)
*/
SELECT * FROM v;
/*=
<1, 5>
<4, NULL>
*/

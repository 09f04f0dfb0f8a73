/* The match of an outer join appears and disappears. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT a.x, b.y FROM a FULL JOIN b ON a.k = b.k;
CREATE MATERIALIZED VIEW kept AS
  SELECT a.x, b.y FROM a FULL JOIN b ON a.k = b.k;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (1, 1);
COMMIT;
/*=
+v(1, NULL)
+v(1, NULL)
+kept(1, NULL)
+kept(1, NULL)
*/
SELECT * FROM v;
/*=
<1, NULL>
<1, NULL>
*/

BEGIN;
INSERT INTO b VALUES (1, 5), (2, 6);
COMMIT;
/*=
+v(1, 5)
+v(1, 5)
+v(NULL, 6)
-v(1, NULL)
-v(1, NULL)
+kept(1, 5)
+kept(1, 5)
+kept(NULL, 6)
-kept(1, NULL)
-kept(1, NULL)
*/
SELECT * FROM v;
/*=
<1, 5>
<1, 5>
<NULL, 6>
*/

BEGIN;
DELETE FROM b WHERE k = 1;
INSERT INTO a VALUES (2, 2);
COMMIT;
/*=
+v(1, NULL)
+v(1, NULL)
+v(2, 6)
-v(1, 5)
-v(1, 5)
-v(NULL, 6)
+kept(1, NULL)
+kept(1, NULL)
+kept(2, 6)
-kept(1, 5)
-kept(1, 5)
-kept(NULL, 6)
*/
SELECT * FROM v;
/*=
<1, NULL>
<1, NULL>
<2, 6>
*/

BEGIN;
DELETE FROM a;
COMMIT;
/*=
+v(NULL, 6)
-v(1, NULL)
-v(1, NULL)
-v(2, 6)
+kept(NULL, 6)
-kept(1, NULL)
-kept(1, NULL)
-kept(2, 6)
*/
SELECT * FROM v;
/*= <NULL, 6> */

/* A self-join. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT l.x, r.x AS other FROM a AS l JOIN a AS r ON l.k = r.k AND l.x < r.x;
CREATE MATERIALIZED VIEW kept AS
  SELECT l.x, r.x AS other FROM a AS l JOIN a AS r ON l.k = r.k AND l.x < r.x;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 1), (1, 2), (1, 3);
COMMIT;
/*=
+v(1, 2)
+v(1, 3)
+v(2, 3)
+kept(1, 2)
+kept(1, 3)
+kept(2, 3)
*/
SELECT * FROM v;
/*=
<1, 2>
<1, 3>
<2, 3>
*/

BEGIN;
DELETE FROM a WHERE x = 2;
INSERT INTO a VALUES (1, 0);
COMMIT;
/*=
+v(0, 1)
+v(0, 3)
-v(1, 2)
-v(2, 3)
+kept(0, 1)
+kept(0, 3)
-kept(1, 2)
-kept(2, 3)
*/
SELECT * FROM v;
/*=
<0, 1>
<0, 3>
<1, 3>
*/

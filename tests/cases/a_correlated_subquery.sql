/* A correlated subquery. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT a.k, (SELECT max(y) FROM b WHERE b.k = a.k AND b.y > a.x) AS m FROM a;
CREATE MATERIALIZED VIEW kept AS
  SELECT a.k, (SELECT max(y) FROM b WHERE b.k = a.k AND b.y > a.x) AS m FROM a;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 2), (NULL, 0);
INSERT INTO b VALUES (1, 1);
COMMIT;
/*=
+v(1, NULL)
+v(NULL, NULL)
+kept(1, NULL)
+kept(NULL, NULL)
*/
SELECT * FROM v;
/*=
<1, NULL>
<NULL, NULL>
*/

BEGIN;
INSERT INTO b VALUES (1, 5), (1, 3), (NULL, 9);
COMMIT;
/*=
+v(1, 5)
-v(1, NULL)
+kept(1, 5)
-kept(1, NULL)
*/
SELECT * FROM v;
/*=
<1, 5>
<NULL, NULL>
*/

BEGIN;
UPDATE a SET x = 4;
DELETE FROM b WHERE y = 5;
COMMIT;
/*=
+v(1, NULL)
-v(1, 5)
+kept(1, NULL)
-kept(1, 5)
*/
SELECT * FROM v;
/*=
<1, NULL>
<NULL, NULL>
*/

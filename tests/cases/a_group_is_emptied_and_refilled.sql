/* A group is emptied and refilled. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT k, sum(x) AS s FROM a GROUP BY k HAVING sum(x) > 2;
CREATE MATERIALIZED VIEW kept AS
  SELECT k, sum(x) AS s FROM a GROUP BY k HAVING sum(x) > 2;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 3), (2, 1);
COMMIT;
/*=
+v(1, 3)
+kept(1, 3)
*/
SELECT * FROM v;
/*= <1, 3> */

BEGIN;
DELETE FROM a WHERE k = 1;
COMMIT;
/*=
-v(1, 3)
-kept(1, 3)
*/
SELECT * FROM v;
/*= */

BEGIN;
INSERT INTO a VALUES (1, 5), (2, 2);
COMMIT;
/*=
+v(1, 5)
+v(2, 3)
+kept(1, 5)
+kept(2, 3)
*/
SELECT * FROM v;
/*=
<1, 5>
<2, 3>
*/

BEGIN;
DELETE FROM a;
INSERT INTO a VALUES (1, 5);
COMMIT;
/*=
-v(2, 3)
-kept(2, 3)
*/
SELECT * FROM v;
/*= <1, 5> */

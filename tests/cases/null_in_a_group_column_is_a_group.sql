/* NULL in a group column is a group. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x INT);
CREATE TABLE b (k INT, y INT);
CREATE VIEW v AS
  SELECT k, count(*) AS n, sum(x) AS s FROM a GROUP BY k;
CREATE MATERIALIZED VIEW kept AS
  SELECT k, count(*) AS n, sum(x) AS s FROM a GROUP BY k;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (NULL, 1), (NULL, NULL), (1, NULL);
COMMIT;
/*=
+v(1, 1, NULL)
+v(NULL, 2, 1)
+kept(1, 1, NULL)
+kept(NULL, 2, 1)
*/
SELECT * FROM v;
/*=
<NULL, 2, 1>
<1, 1, NULL>
*/

BEGIN;
DELETE FROM a WHERE x = 1;
COMMIT;
/*=
+v(NULL, 1, NULL)
-v(NULL, 2, 1)
+kept(NULL, 1, NULL)
-kept(NULL, 2, 1)
*/
SELECT * FROM v;
/*=
<NULL, 1, NULL>
<1, 1, NULL>
*/

BEGIN;
DELETE FROM a WHERE k IS NULL;
COMMIT;
/*=
-v(NULL, 1, NULL)
-kept(NULL, 1, NULL)
*/
SELECT * FROM v;
/*= <1, 1, NULL> */

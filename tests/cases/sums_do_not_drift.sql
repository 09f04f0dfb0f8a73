/* Sums do not drift. A view, a stored copy of it, and what a client is told of both. */

CREATE TABLE a (k INT, x DOUBLE);
CREATE TABLE d (x DECIMAL(9, 2));
CREATE VIEW v AS
  SELECT sum(a.x) AS s, (SELECT sum(x) FROM d) AS e FROM a;
CREATE MATERIALIZED VIEW kept AS
  SELECT sum(a.x) AS s, (SELECT sum(x) FROM d) AS e FROM a;
/*~ monitor v, kept */

BEGIN;
INSERT INTO a VALUES (1, 0.5), (1, 1e16);
INSERT INTO d VALUES (0.10), (0.20);
COMMIT;
/*=
+v(1e+16, 0.30)
-v(NULL, NULL)
+kept(1e+16, 0.30)
-kept(NULL, NULL)
*/
SELECT * FROM v;
/*= <1e+16, 0.30> */

BEGIN;
DELETE FROM a WHERE x > 1;
DELETE FROM d WHERE x = 0.1;
COMMIT;
/*=
+v(0.5, 0.20)
-v(1e+16, 0.30)
+kept(0.5, 0.20)
-kept(1e+16, 0.30)
*/
SELECT * FROM v;
/*= <0.5, 0.20> */

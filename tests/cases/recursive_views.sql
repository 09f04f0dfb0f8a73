/* WITH RECURSIVE: reachability, on chains and circles, with links that come and go */

CREATE TABLE link (a STRING, b STRING);
CREATE VIEW reach AS
  WITH RECURSIVE r (a, b) AS (
    SELECT a, b FROM link UNION SELECT r.a, l.b FROM r JOIN link AS l ON l.a = r.b)
  SELECT a, b FROM r;
CREATE VIEW alone AS
  SELECT DISTINCT l.a FROM link AS l WHERE NOT EXISTS (SELECT 1 FROM reach AS r WHERE r.b = l.a);
CREATE MATERIALIZED VIEW width AS SELECT a, count(*) AS n FROM reach GROUP BY a;
/*~ monitor reach, alone, width */

INSERT INTO link VALUES ('a', 'b'), ('b', 'c');
/*=
+reach("a", "b")
+reach("b", "c")
+reach("a", "c")
+alone("a")
+width("a", 2)
+width("b", 1)
*/
/* a second way to c: no new row of reach */
INSERT INTO link VALUES ('a', 'c');
/*= */
/* the first way goes, the second is left */
DELETE FROM link WHERE a = 'b';
/*=
-reach("b", "c")
-width("b", 1)
*/
/* a circle: everyone reaches everyone, and nobody is alone */
INSERT INTO link VALUES ('c', 'a');
/*=
+reach("c", "a")
+reach("c", "b")
+reach("c", "c")
+reach("a", "a")
-alone("a")
+width("c", 3)
-width("a", 2)
+width("a", 3)
*/
/* facts that only derive each other do not stay */
DELETE FROM link WHERE b = 'c';
/*=
-reach("a", "c")
-reach("a", "a")
-reach("c", "c")
+alone("c")
-width("a", 3)
+width("a", 1)
-width("c", 3)
+width("c", 2)
*/
SELECT * FROM reach;
/*=
<"a", "b">
<"c", "a">
<"c", "b">
*/
/* deleted and put back in one transaction */
BEGIN;
DELETE FROM link;
INSERT INTO link VALUES ('c', 'a'), ('a', 'b');
COMMIT;
/*= */
DELETE FROM link;
/*=
-reach("a", "b")
-reach("c", "a")
-reach("c", "b")
-alone("c")
-width("a", 1)
-width("c", 2)
*/
SELECT count(*) AS n FROM width;
/*= <0> */

/* Recursion with arithmetic: a bill of materials, counted with UNION ALL */

CREATE TABLE part (whole STRING, part STRING, n INT);
CREATE VIEW needed AS
  WITH RECURSIVE need (item, part, n, depth) AS (
    SELECT whole, part, n, 1 FROM part
    UNION ALL
    SELECT need.item, p.part, need.n * p.n, need.depth + 1
    FROM need JOIN part AS p ON p.whole = need.part WHERE need.depth < 5)
  SELECT item, part, sum(n) AS n, max(depth) AS depth FROM need GROUP BY item, part;
/*~ monitor needed */

INSERT INTO part VALUES ('bike', 'wheel', 2), ('wheel', 'spoke', 20), ('wheel', 'bolt', 4);
/*=
+needed("bike", "wheel", 2, 1)
+needed("wheel", "spoke", 20, 1)
+needed("wheel", "bolt", 4, 1)
+needed("bike", "spoke", 40, 2)
+needed("bike", "bolt", 8, 2)
*/
INSERT INTO part VALUES ('bike', 'bolt', 3);
/*=
-needed("bike", "bolt", 8, 2)
+needed("bike", "bolt", 11, 2)
*/
UPDATE part SET n = 5 WHERE whole = 'wheel' AND part = 'bolt';
/*=
-needed("wheel", "bolt", 4, 1)
+needed("wheel", "bolt", 5, 1)
-needed("bike", "bolt", 11, 2)
+needed("bike", "bolt", 13, 2)
*/
DELETE FROM part WHERE whole = 'bike' AND part = 'wheel';
/*=
-needed("bike", "wheel", 2, 1)
-needed("bike", "spoke", 40, 2)
-needed("bike", "bolt", 13, 2)
+needed("bike", "bolt", 3, 1)
*/
SELECT part, n FROM needed WHERE item = 'bike';
/*= <"bolt", 3> */

/* Window functions: ranks, running sums and neighbours change for the rows behind a change */

CREATE TABLE score (team STRING, day INT, points INT);
CREATE VIEW standing AS SELECT team, day, sum(points) OVER (PARTITION BY team ORDER BY day) AS total FROM score;
CREATE VIEW ranked AS SELECT day, team, rank() OVER (PARTITION BY day ORDER BY points DESC) AS place FROM score;
CREATE VIEW before AS SELECT team, day, lag(points) OVER (PARTITION BY team ORDER BY day) AS last FROM score;
/*~ monitor standing, ranked, before */

INSERT INTO score VALUES ('red', 1, 3), ('red', 2, 1), ('blue', 1, 3);
/*=
+standing("red", 1, 3)
+standing("red", 2, 4)
+standing("blue", 1, 3)
+ranked(1, "red", 1)
+ranked(1, "blue", 1)
+ranked(2, "red", 1)
+before("red", 1, NULL)
+before("red", 2, 3)
+before("blue", 1, NULL)
*/
INSERT INTO score VALUES ('blue', 2, 2);
/*=
+standing("blue", 2, 5)
-ranked(2, "red", 1)
+ranked(2, "red", 2)
+ranked(2, "blue", 1)
+before("blue", 2, 3)
*/
UPDATE score SET points = 0 WHERE team = 'red' AND day = 1;
/*=
-standing("red", 1, 3)
-standing("red", 2, 4)
+standing("red", 1, 0)
+standing("red", 2, 1)
-ranked(1, "red", 1)
+ranked(1, "red", 2)
-before("red", 2, 3)
+before("red", 2, 0)
*/
DELETE FROM score WHERE team = 'blue' AND day = 1;
/*=
-standing("blue", 1, 3)
-standing("blue", 2, 5)
+standing("blue", 2, 2)
-ranked(1, "blue", 1)
-ranked(1, "red", 2)
+ranked(1, "red", 1)
-before("blue", 1, NULL)
-before("blue", 2, 3)
+before("blue", 2, NULL)
*/
SELECT * FROM standing WHERE team = 'blue';
/*= <"blue", 2, 2> */

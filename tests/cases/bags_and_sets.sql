/* Duplicates: UNION ALL, EXCEPT ALL and INTERSECT ALL count copies, their plain forms do not */

CREATE TABLE a (x INT);
CREATE TABLE b (x INT);
CREATE VIEW both_all AS SELECT x FROM a UNION ALL SELECT x FROM b;
CREATE VIEW less_all AS SELECT x FROM a EXCEPT ALL SELECT x FROM b;
CREATE VIEW same_all AS SELECT x FROM a INTERSECT ALL SELECT x FROM b;
CREATE VIEW less AS SELECT x FROM a EXCEPT SELECT x FROM b;
CREATE VIEW same AS SELECT x FROM a INTERSECT SELECT x FROM b;
INSERT INTO a VALUES (1), (1), (1), (2), (NULL), (NULL);
INSERT INTO b VALUES (1), (3), (NULL);
SELECT * FROM both_all WHERE x = 1;
/*=
<1>
<1>
<1>
<1>
*/
SELECT * FROM less_all;
/*=
<1>
<1>
<2>
<NULL>
*/
SELECT * FROM same_all;
/*=
<1>
<NULL>
*/
SELECT * FROM less;
/*= <2> */
SELECT * FROM same;
/*=
<1>
<NULL>
*/
/*~ monitor both_all, less_all, same_all, less, same */
INSERT INTO b VALUES (1);
/*=
+both_all(1)
-less_all(1)
+same_all(1)
*/
DELETE FROM b WHERE x = 1;
/*=
-both_all(1)
-both_all(1)
+less_all(1)
+less_all(1)
-same_all(1)
-same_all(1)
+less(1)
-same(1)
*/
DELETE FROM a WHERE x IS NULL;
/*=
-both_all(NULL)
-both_all(NULL)
-less_all(NULL)
-same_all(NULL)
-same(NULL)
*/

/* Views that are defined anew: those above them, their copies and their monitors follow */

CREATE TABLE t (k INT, x INT);
INSERT INTO t VALUES (1, 1), (2, 5), (3, 9);
CREATE VIEW chosen AS SELECT k, x FROM t WHERE x > 4;
CREATE VIEW doubled AS SELECT k, x * 2 AS y FROM chosen;
CREATE MATERIALIZED VIEW kept AS SELECT sum(y) AS s FROM doubled;
SELECT * FROM kept;
/*= <28> */
/*~ monitor doubled */
CREATE OR REPLACE VIEW chosen AS SELECT k, x FROM t WHERE x < 6;
/*=
-doubled(3, 18)
+doubled(1, 2)
*/
SELECT * FROM kept;
/*= <12> */
INSERT INTO t VALUES (4, 3), (5, 8);
/*= +doubled(4, 6) */
SELECT * FROM kept;
/*= <18> */
/* in a transaction that is undone */
BEGIN;
CREATE OR REPLACE VIEW chosen AS SELECT k, x FROM t;
SELECT count(*) AS n FROM doubled;
/*= <5> */
ROLLBACK;
SELECT count(*) AS n FROM doubled;
/*= <3> */
/* a definition that those above cannot use is refused */
CREATE OR REPLACE VIEW chosen AS SELECT k FROM t;
/*! in-use */
SELECT * FROM doubled;
/*=
<1, 2>
<2, 10>
<4, 6>
*/

/* Materialised views: stored, exact after every commit, read like tables, and over each other */

CREATE TABLE stock (item STRING PRIMARY KEY, n INT, price DECIMAL(8, 2));
INSERT INTO stock VALUES ('nut', 10, 0.25), ('bolt', 4, 0.50);
/* it has the rows of before */
CREATE MATERIALIZED VIEW worth AS SELECT item, n * price AS value FROM stock WHERE n > 0;
SELECT * FROM worth;
/*=
<"nut", 2.50>
<"bolt", 2.00>
*/
CREATE MATERIALIZED VIEW whole AS SELECT count(*) AS items, sum(value) AS value FROM worth;
SELECT * FROM whole;
/*= <2, 4.50> */
UPDATE stock SET n = 0 WHERE item = 'bolt';
SELECT * FROM worth;
/*= <"nut", 2.50> */
SELECT * FROM whole;
/*= <1, 2.50> */
/* inside a transaction it has the rows of the commit before */
BEGIN;
UPDATE stock SET n = 1 WHERE item = 'bolt';
ROLLBACK;
SELECT * FROM whole;
/*= <1, 2.50> */
DELETE FROM stock;
SELECT * FROM worth;
/*= */
SELECT * FROM whole;
/*= <0, NULL> */
INSERT INTO stock VALUES ('nut', 10, 0.25);
SELECT * FROM whole;
/*= <1, 2.50> */
/* it is not written to, and not dropped under others */
INSERT INTO worth VALUES ('x', 1);
/*! not-updatable */
DROP VIEW worth;
/*! in-use */
DROP MATERIALIZED VIEW whole;
DROP MATERIALIZED VIEW worth;
SELECT * FROM worth;
/*! unknown-table */

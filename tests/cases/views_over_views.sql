/* Views over views: a change passes through every layer, and only where it makes a difference */

CREATE TABLE sale (shop STRING, item STRING, amount INT);
CREATE TABLE shop (name STRING PRIMARY KEY, country STRING);
CREATE VIEW takings AS SELECT shop, sum(amount) AS total FROM sale GROUP BY shop;
CREATE VIEW good AS SELECT shop, total FROM takings WHERE total >= 100;
CREATE VIEW good_by_country AS
  SELECT s.country, count(*) AS shops, max(g.total) AS best
  FROM good AS g JOIN shop AS s ON s.name = g.shop GROUP BY s.country;
/*~ monitor takings, good, good_by_country */

INSERT INTO shop VALUES ('Oslo', 'NO'), ('Bergen', 'NO'), ('Lund', 'SE');
/*= */
INSERT INTO sale VALUES ('Oslo', 'ski', 90), ('Lund', 'boat', 150);
/*=
+takings("Oslo", 90)
+takings("Lund", 150)
+good("Lund", 150)
+good_by_country("SE", 1, 150)
*/
/* the total changes, what is above it does not */
INSERT INTO sale VALUES ('Oslo', 'wax', 5);
/*=
-takings("Oslo", 90)
+takings("Oslo", 95)
*/
INSERT INTO sale VALUES ('Oslo', 'wax', 5), ('Bergen', 'ski', 300);
/*=
-takings("Oslo", 95)
+takings("Oslo", 100)
+takings("Bergen", 300)
+good("Oslo", 100)
+good("Bergen", 300)
+good_by_country("NO", 2, 300)
*/
/* a return and a sale of the same amount in one transaction: nothing has changed above */
BEGIN;
DELETE FROM sale WHERE shop = 'Oslo' AND item = 'ski';
INSERT INTO sale VALUES ('Oslo', 'boots', 90);
COMMIT;
/*= */
/* the join changes where the table of shops does */
UPDATE shop SET country = 'SE' WHERE name = 'Bergen';
/*=
-good_by_country("NO", 2, 300)
-good_by_country("SE", 1, 150)
+good_by_country("NO", 1, 100)
+good_by_country("SE", 2, 300)
*/
DELETE FROM sale WHERE shop = 'Oslo';
/*=
-takings("Oslo", 100)
-good("Oslo", 100)
-good_by_country("NO", 1, 100)
*/
SELECT * FROM good_by_country;
/*= <"SE", 2, 300> */
SELECT * FROM takings WHERE total > 200;
/*= <"Bergen", 300> */

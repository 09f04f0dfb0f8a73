/* Outer joins in every direction, with conditions on either side and aggregates above */

CREATE TABLE person (id INT PRIMARY KEY, name STRING);
CREATE TABLE pet (owner INT, name STRING, age INT);
CREATE VIEW owners AS SELECT p.name, q.name AS pet FROM person AS p LEFT JOIN pet AS q ON q.owner = p.id;
CREATE VIEW old_pets AS
  SELECT p.name, count(q.name) AS n FROM person AS p
  LEFT JOIN pet AS q ON q.owner = p.id AND q.age > 5 GROUP BY p.name;
CREATE VIEW strays AS SELECT q.name FROM person AS p RIGHT JOIN pet AS q ON q.owner = p.id WHERE p.id IS NULL;
/*~ monitor owners, old_pets, strays */

INSERT INTO person VALUES (1, 'Ann'), (2, 'Bob');
/*=
+owners("Ann", NULL)
+owners("Bob", NULL)
+old_pets("Ann", 0)
+old_pets("Bob", 0)
*/
INSERT INTO pet VALUES (1, 'Rex', 3), (9, 'Tom', 7), (NULL, 'Pip', 1);
/*=
-owners("Ann", NULL)
+owners("Ann", "Rex")
+strays("Tom")
+strays("Pip")
*/
UPDATE pet SET owner = 1 WHERE name = 'Tom';
/*=
+owners("Ann", "Tom")
-old_pets("Ann", 0)
+old_pets("Ann", 1)
-strays("Tom")
*/
UPDATE pet SET age = age + 3;
/*=
-old_pets("Ann", 1)
+old_pets("Ann", 2)
*/
DELETE FROM person WHERE id = 1;
/*=
-owners("Ann", "Rex")
-owners("Ann", "Tom")
-old_pets("Ann", 2)
+strays("Rex")
+strays("Tom")
*/
INSERT INTO person VALUES (9, 'Ann');
/*=
+owners("Ann", NULL)
+old_pets("Ann", 0)
*/

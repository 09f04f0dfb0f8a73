/* Transactions that are undone: nobody is told, and nothing is left */

CREATE TABLE account (name STRING PRIMARY KEY, balance INT NOT NULL CHECK (balance >= 0));
CREATE VIEW whole AS SELECT sum(balance) AS total FROM account;
INSERT INTO account VALUES ('ann', 100), ('bob', 50);
/*~ monitor whole, account */

BEGIN;
UPDATE account SET balance = balance - 30 WHERE name = 'ann';
UPDATE account SET balance = balance + 30 WHERE name = 'bob';
COMMIT;
/*=
-account("ann", 100)
+account("ann", 70)
-account("bob", 50)
+account("bob", 80)
*/
BEGIN;
DELETE FROM account;
SELECT * FROM whole;
/*= <NULL> */
ROLLBACK;
/*= */
SELECT * FROM whole;
/*= <150> */
UPDATE account SET balance = balance - 100 WHERE name = 'bob';
/*! constraint: balance */
INSERT INTO account VALUES ('ann', 1);
/*! row-exists */
INSERT INTO account VALUES ('cyd', NULL);
/*! null */
SELECT * FROM account;
/*=
<"ann", 70>
<"bob", 80>
*/
INSERT INTO account VALUES ('cyd', 5);
/*=
+account("cyd", 5)
-whole(150)
+whole(155)
*/

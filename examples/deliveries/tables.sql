-- For PostgreSQL: psql shop -f tables.sql
CREATE TABLE delivery (id int PRIMARY KEY, customer text NOT NULL, harbour text NOT NULL);
INSERT INTO delivery VALUES (1, 'Ada', 'Bergen'), (2, 'Bob', 'Oslo'), (3, 'Cy', 'Bergen');

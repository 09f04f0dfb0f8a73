CREATE TABLE orders (id INT PRIMARY KEY, item STRING NOT NULL, state STRING NOT NULL);
CREATE VIEW to_ship AS SELECT id, item FROM orders WHERE state = 'paid';

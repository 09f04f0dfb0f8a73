CREATE TABLE orders (order_id INT PRIMARY KEY, customer STRING NOT NULL, day DATE NOT NULL);

CREATE TABLE line (
    order_id INT NOT NULL REFERENCES orders,
    amount DECIMAL(9, 2) NOT NULL
);

-- What dbt calls an incremental model; here it needs no filter, and deletions come out right.
CREATE MATERIALIZED VIEW customer_orders AS
    SELECT customer, count(DISTINCT order_id) AS orders, sum(amount) AS spent, max(day) AS last_order
    FROM orders JOIN line USING (order_id)
    GROUP BY customer;

CREATE MATERIALIZED VIEW best_customers AS
    SELECT customer, spent FROM customer_orders ORDER BY spent DESC, customer LIMIT 2;

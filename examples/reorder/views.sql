CREATE VIEW available AS
    SELECT i.name, i.quantity - coalesce(sum(s.pieces), 0) AS pieces, i.least
    FROM item AS i LEFT JOIN sale AS s ON s.item = i.name
    GROUP BY i.name, i.quantity, i.least;

CREATE VIEW low AS SELECT name, pieces, least FROM available WHERE pieces < least;

CREATE MATERIALIZED VIEW waiting_for AS
    SELECT i.supplier, count(*) AS items, max(s.days) AS days
    FROM low AS l JOIN item AS i ON i.name = l.name JOIN supplier AS s ON s.name = i.supplier
    GROUP BY i.supplier;

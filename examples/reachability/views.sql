CREATE TABLE machine (name STRING PRIMARY KEY, room STRING NOT NULL);

-- Nobody gets to these from the gateway.
CREATE VIEW cut_off AS
    SELECT name, room FROM machine
    WHERE name <> 'gateway' AND name NOT IN (SELECT b FROM reaches WHERE a = 'gateway');

CREATE MATERIALIZED VIEW cut_off_per_room AS
    SELECT room, count(*) AS machines FROM cut_off GROUP BY room;

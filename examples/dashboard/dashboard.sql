-- Each is a tile of the dashboard: `harken serve` streams its changes to browsers.
CREATE MATERIALIZED VIEW visits_per_page AS
    SELECT page, count(*) AS visits, sum(seconds) AS seconds FROM visit GROUP BY page;

CREATE MATERIALIZED VIEW visits_per_hour AS
    SELECT date_trunc('HOUR', at) AS hour, count(*) AS visits FROM visit GROUP BY date_trunc('HOUR', at);

CREATE VIEW top_pages AS SELECT page, visits FROM visits_per_page ORDER BY visits DESC, page LIMIT 3;

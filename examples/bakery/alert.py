"""Takes in the files that have come into sales/: python alert.py bakery.db prints what is low."""

import sys
from pathlib import Path

import harken

SALES = Path(__file__).parent / "sales"
SETUP = f"""
CREATE TABLE IF NOT EXISTS product
    (name STRING PRIMARY KEY, delivered INT NOT NULL, least INT NOT NULL);
CREATE TABLE IF NOT EXISTS sale (receipt INT, product STRING, pieces INT)
    USING lake LOCATION '{SALES}' KEY (receipt);
CREATE OR REPLACE VIEW low AS
    SELECT p.name, p.delivered - sum(s.pieces) AS pieces_left
    FROM product AS p JOIN sale AS s ON s.product = p.name
    GROUP BY p.name, p.delivered, p.least
    HAVING p.delivered - sum(s.pieces) < p.least;
"""
PRODUCTS = [("bread", 100, 20), ("cake", 10, 5), ("roll", 200, 50)]


def main(path: str) -> None:
    with harken.connect(path) as db:
        db.sql(SETUP)
        db.upsert("product", PRODUCTS)
        print("low so far:", sorted(name for name, _ in db.sql("SELECT * FROM low").rows))
        low = db.monitor("low")
        db.step()
        for change in low.changes():
            for name, pieces_left in change.plus:
                print(f"low: {name}, {pieces_left} left")


if __name__ == "__main__":
    main(sys.argv[1])

CREATE TABLE item (
    name STRING PRIMARY KEY,
    quantity INT NOT NULL CHECK (quantity >= 0),
    least INT NOT NULL,                              -- order more below this
    supplier STRING NOT NULL REFERENCES supplier
);

CREATE TABLE supplier (
    name STRING PRIMARY KEY,
    days INT NOT NULL                                -- that a delivery takes
);

CREATE TABLE sale (item STRING NOT NULL REFERENCES item, pieces INT NOT NULL);

-- What the rule in rules.amosql writes.
CREATE TABLE purchase (item STRING PRIMARY KEY, pieces INT NOT NULL);

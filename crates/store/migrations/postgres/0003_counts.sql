-- Figures: how many sends ended how, dead letters by reason, messages accepted; by day, owner and minute of the day,
-- later on by hour. `owner` is an endpoint, an application with its sign changed, or 0 for the server; `what` is a code,
-- `spread` packs the distributions of sends, see src/stored/figures.rs.

CREATE TABLE figure_minute (
    day bigint NOT NULL,
    owner bigint NOT NULL,
    minute bigint NOT NULL,
    what smallint NOT NULL,
    count bigint NOT NULL,
    spread bytea,
    PRIMARY KEY (day, owner, minute, what)
);
CREATE TABLE figure_hour (
    day bigint NOT NULL,
    owner bigint NOT NULL,
    minute bigint NOT NULL,
    what smallint NOT NULL,
    count bigint NOT NULL,
    spread bytea,
    PRIMARY KEY (day, owner, minute, what)
);

-- Deliveries that were given up, until they are counted: a letter may be replayed before.
CREATE TABLE buried (
    place bigint PRIMARY KEY,
    endpoint bigint NOT NULL,
    reason smallint NOT NULL
);

-- How far counting has come: rows of attempts, messages and burials up to a key are in the figures; of those up to
-- `writing` the figures up to a place. What was there before is not counted.
CREATE TABLE figure_mark (
    one bigint PRIMARY KEY CHECK (one = 1),
    up_to bigint NOT NULL,
    writing bigint NOT NULL,
    owner bigint,
    minute bigint,
    what smallint
);
INSERT INTO figure_mark (one, up_to, writing)
SELECT 1, last, last FROM (SELECT greatest((SELECT max(key) FROM message), (SELECT max(key) FROM attempt), 0) AS last) AS keys;

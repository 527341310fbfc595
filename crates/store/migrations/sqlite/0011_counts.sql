-- Figures: how many sends ended how, dead letters by reason, messages accepted; by day, owner and minute of the day,
-- later on by hour. `owner` is an endpoint, an application with its sign changed, or 0 for the server; `what` is a code,
-- `spread` packs the distributions of sends, see src/stored/figures.rs.

CREATE TABLE figure_minute (
    day INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    what INTEGER NOT NULL,
    count INTEGER NOT NULL,
    spread BLOB,
    PRIMARY KEY (day, owner, minute, what)
) WITHOUT ROWID, STRICT;
CREATE TABLE figure_hour (
    day INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    what INTEGER NOT NULL,
    count INTEGER NOT NULL,
    spread BLOB,
    PRIMARY KEY (day, owner, minute, what)
) WITHOUT ROWID, STRICT;

-- Deliveries that were given up, until they are counted: a letter may be replayed before.
CREATE TABLE buried (
    place INTEGER PRIMARY KEY,
    endpoint INTEGER NOT NULL,
    reason INTEGER NOT NULL
) STRICT;

-- How far counting has come: rows of attempts, messages and burials up to a key are in the figures; of those up to
-- `writing` the figures up to a place. What was there before is not counted.
CREATE TABLE figure_mark (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    up_to INTEGER NOT NULL,
    writing INTEGER NOT NULL,
    owner INTEGER,
    minute INTEGER,
    what INTEGER
) STRICT;
INSERT INTO figure_mark (one, up_to, writing)
SELECT 1, last, last FROM (SELECT max(coalesce((SELECT max(key) FROM message), 0),
                                      coalesce((SELECT max(key) FROM attempt), 0)) AS last);

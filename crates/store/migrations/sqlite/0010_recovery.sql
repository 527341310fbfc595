-- Outages: the last one of each lane, and what endpoints are owed: their dead letters since then go back once they
-- work again (`ready`), if they want that. An endpoint without a word of its own does as the server says.

ALTER TABLE lane_state ADD COLUMN outage_since INTEGER;
ALTER TABLE lane_state ADD COLUMN outage_until INTEGER;

ALTER TABLE endpoint ADD COLUMN auto_replay INTEGER;

CREATE TABLE recovery (
    endpoint INTEGER PRIMARY KEY,
    since INTEGER NOT NULL,
    ready INTEGER NOT NULL
) STRICT;
CREATE INDEX recovery_ready ON recovery (endpoint) WHERE ready = 1;

-- Runs of refusals, by when the first of one came: the run that holds a lane, and of which run a dead letter is.
ALTER TABLE lane_state ADD COLUMN rejected_since INTEGER;
ALTER TABLE closed ADD COLUMN run INTEGER;

-- Where an endpoint is asked whether it is well while nothing is sent to it.
ALTER TABLE endpoint ADD COLUMN health_check_url TEXT;

-- Outages: the last one of each lane, and what endpoints are owed: their dead letters since then go back once they
-- work again (`ready`), if they want that. An endpoint without a word of its own does as the server says.

ALTER TABLE lane_state ADD COLUMN outage_since timestamptz, ADD COLUMN outage_until timestamptz;

ALTER TABLE endpoint ADD COLUMN auto_replay boolean;

CREATE TABLE recovery (
    endpoint bigint PRIMARY KEY,
    since timestamptz NOT NULL,
    ready boolean NOT NULL
);
CREATE INDEX recovery_ready ON recovery (endpoint) WHERE ready;

-- Runs of refusals, by when the first of one came: the run that holds a lane, and of which run a dead letter is.
ALTER TABLE lane_state ADD COLUMN rejected_since timestamptz;
ALTER TABLE closed ADD COLUMN run timestamptz;

-- Where an endpoint is asked whether it is well while nothing is sent to it.
ALTER TABLE endpoint ADD COLUMN health_check_url text;

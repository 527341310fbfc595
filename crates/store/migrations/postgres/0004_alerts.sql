-- Alerts: what operators set, incidents, and notifications in order of their commit that were not sent yet. What is only
-- read whole is packed, see src/stored/alert.rs; that of a route may be sealed. Ids grow with time.

CREATE TABLE alert_rule (
    name text COLLATE "C" PRIMARY KEY,
    spec bytea NOT NULL
);

CREATE TABLE alert_route (
    name text COLLATE "C" PRIMARY KEY,
    spec bytea NOT NULL
);

CREATE TABLE alert_silence (
    id bytea PRIMARY KEY,
    rule text COLLATE "C",
    endpoint bytea,
    from_then timestamptz NOT NULL,
    until timestamptz NOT NULL,
    comment text NOT NULL
);

CREATE TABLE alert_incident (
    id bytea PRIMARY KEY,
    rule text COLLATE "C" NOT NULL,
    phase smallint NOT NULL,
    resolved_at timestamptz,
    acknowledged_at timestamptz,
    spec bytea NOT NULL
);
CREATE INDEX alert_open ON alert_incident (id) WHERE resolved_at IS NULL;
CREATE INDEX alert_resolved ON alert_incident (resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE alert_telling (
    place bigint PRIMARY KEY,
    spec bytea NOT NULL
);

-- Endpoints that fail, those that fail for longest first.
CREATE INDEX lane_failing ON lane_state (failing_since) WHERE failing_since IS NOT NULL;

-- Alerts: what operators set, incidents, and notifications in order of their commit that were not sent yet. What is only
-- read whole is packed, see src/stored/alert.rs; that of a route may be sealed. Ids grow with time.

CREATE TABLE alert_rule (
    name TEXT PRIMARY KEY,
    spec BLOB NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE alert_route (
    name TEXT PRIMARY KEY,
    spec BLOB NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE alert_silence (
    id BLOB PRIMARY KEY,
    rule TEXT,
    endpoint BLOB,
    from_then INTEGER NOT NULL,
    until INTEGER NOT NULL,
    comment TEXT NOT NULL
) WITHOUT ROWID, STRICT;

CREATE TABLE alert_incident (
    id BLOB PRIMARY KEY,
    rule TEXT NOT NULL,
    phase INTEGER NOT NULL,
    resolved_at INTEGER,
    acknowledged_at INTEGER,
    spec BLOB NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX alert_open ON alert_incident (id) WHERE resolved_at IS NULL;
CREATE INDEX alert_resolved ON alert_incident (resolved_at) WHERE resolved_at IS NOT NULL;

CREATE TABLE alert_telling (
    place INTEGER PRIMARY KEY,
    spec BLOB NOT NULL
) STRICT;

-- Endpoints that fail, those that fail for longest first.
CREATE INDEX lane_failing ON lane_state (failing_since) WHERE failing_since IS NOT NULL;

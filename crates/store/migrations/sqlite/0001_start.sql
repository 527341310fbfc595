-- The first schema. Times are microseconds since 1970, UTC. Keys of messages and attempts carry their time, so that
-- a range of keys is a range of time. Payloads and bodies are BLOBs: they come out as they went in.

PRAGMA application_id = 1348827499; -- "Peyk"

CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID, STRICT;

-- Applications. Deleted ones stay, so that history can name them; their uid is free again.
CREATE TABLE app (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    org BLOB NOT NULL,
    uid TEXT,
    name TEXT NOT NULL,
    throttle_rate INTEGER,
    metadata TEXT NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER
) STRICT;
CREATE UNIQUE INDEX app_uid ON app (org, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX app_list ON app (org, id) WHERE deleted_at IS NULL;

-- Endpoints. Lists and overrides are packed, see sqlite/pack.rs; the first byte of secrets says how they are kept.
CREATE TABLE endpoint (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    app INTEGER NOT NULL,
    uid TEXT,
    url TEXT NOT NULL,
    description TEXT NOT NULL,
    spec_version INTEGER NOT NULL,
    disabled INTEGER,
    event_types BLOB,
    channels BLOB,
    throttle_rate INTEGER,
    metadata TEXT NOT NULL,
    headers BLOB NOT NULL,
    retry BLOB NOT NULL,
    breaker BLOB NOT NULL,
    timeout INTEGER,
    ordering INTEGER NOT NULL,
    secrets BLOB NOT NULL,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    deleted_at INTEGER,
    swept INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX endpoint_uid ON endpoint (app, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX endpoint_list ON endpoint (app, key);
CREATE INDEX endpoint_unswept ON endpoint (deleted_at) WHERE deleted_at IS NOT NULL AND swept = 0;

-- Where an endpoint's sends went: a URL holds for attempts begun at or after `at` and recorded after `since`.
CREATE TABLE endpoint_url (
    endpoint INTEGER NOT NULL,
    since INTEGER NOT NULL,
    at INTEGER NOT NULL,
    url TEXT NOT NULL,
    PRIMARY KEY (endpoint, since)
) WITHOUT ROWID, STRICT;

CREATE TABLE event_type (
    org BLOB NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    archived INTEGER NOT NULL,
    deprecated INTEGER NOT NULL,
    schemas TEXT,
    feature_flag TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (org, name)
) WITHOUT ROWID, STRICT;

-- Messages, in order of acceptance. A missing payload is one that is gone; no content type means JSON.
CREATE TABLE message (
    key INTEGER PRIMARY KEY,
    random BLOB NOT NULL,
    app INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    event_type TEXT NOT NULL,
    event_id TEXT,
    channels BLOB,
    content_type TEXT,
    retention_days INTEGER,
    edited_from BLOB,
    key_scope BLOB,
    key_body BLOB,
    payload BLOB
) STRICT;
CREATE UNIQUE INDEX message_event ON message (app, event_id) WHERE event_id IS NOT NULL;

-- Pending work: queue and index in one. A row is fresh until it is moved; a fresh one is found by its message's time
-- of acceptance, a moved one by its own index, so that the hot path touches no index. `manual`, here and in attempts:
-- 0 by the policy, 1 one extra send, 2 put back by a replay.
CREATE TABLE pending (
    endpoint INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    message INTEGER NOT NULL,
    manual INTEGER NOT NULL,
    age_from INTEGER NOT NULL,
    sends INTEGER NOT NULL,
    budget_used INTEGER NOT NULL,
    last_delay INTEGER NOT NULL,
    moved INTEGER NOT NULL,
    PRIMARY KEY (endpoint, due_at, message, manual)
) WITHOUT ROWID, STRICT;
CREATE INDEX pending_moved ON pending (message, endpoint) WHERE moved = 1;

-- Attempts, in order of their commit.
CREATE TABLE attempt (
    key INTEGER PRIMARY KEY,
    random BLOB NOT NULL,
    message INTEGER NOT NULL,
    endpoint INTEGER NOT NULL,
    n INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    took INTEGER NOT NULL,
    manual INTEGER NOT NULL,
    resent INTEGER NOT NULL,
    status INTEGER NOT NULL,
    failure INTEGER,
    retry_after INTEGER,
    cut INTEGER,
    next_due INTEGER,
    next_term INTEGER,
    text TEXT,
    body BLOB
) STRICT;
CREATE UNIQUE INDEX attempt_of ON attempt (message, endpoint, n);

-- Deliveries that ended otherwise than delivered. Only dead ones stand in lists, in order of their place.
CREATE TABLE closed (
    place INTEGER PRIMARY KEY,
    message INTEGER NOT NULL,
    endpoint INTEGER NOT NULL,
    app INTEGER NOT NULL,
    org BLOB NOT NULL,
    state INTEGER NOT NULL,
    reason INTEGER NOT NULL,
    at INTEGER NOT NULL,
    sends INTEGER NOT NULL,
    error TEXT
) STRICT;
CREATE UNIQUE INDEX closed_of ON closed (message, endpoint);
CREATE INDEX dead_of_org ON closed (org, place) WHERE state = 1;
CREATE INDEX dead_of_app ON closed (app, place) WHERE state = 1;
CREATE INDEX dead_of_endpoint ON closed (endpoint, place) WHERE state = 1;

-- Idempotency keys stand in their messages; runs of them are written once in a while, see sqlite/used_keys.rs.
CREATE TABLE key_run (
    number INTEGER PRIMARY KEY,
    up_to INTEGER NOT NULL,
    keys INTEGER NOT NULL,
    filter BLOB NOT NULL
) STRICT;
CREATE TABLE key_part (
    place INTEGER PRIMARY KEY,
    entries BLOB NOT NULL
) STRICT;

-- Lists, filled in arrears; `listed` says up to which key, and up to which key a window is being written. What lies
-- beyond is read from the tables themselves. A row holds up to 100 keys in order, 8 bytes each.
CREATE TABLE listed (
    name TEXT PRIMARY KEY,
    up_to INTEGER NOT NULL,
    writing INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE TABLE message_by_app (
    owner INTEGER NOT NULL,
    last INTEGER NOT NULL,
    keys BLOB NOT NULL,
    PRIMARY KEY (owner, last)
) WITHOUT ROWID, STRICT;
CREATE TABLE attempt_by_endpoint (
    owner INTEGER NOT NULL,
    last INTEGER NOT NULL,
    keys BLOB NOT NULL,
    PRIMARY KEY (owner, last)
) WITHOUT ROWID, STRICT;

CREATE TABLE lane_state (
    endpoint INTEGER PRIMARY KEY,
    open_until INTEGER,
    generation INTEGER NOT NULL,
    open_for INTEGER NOT NULL,
    failing_since INTEGER,
    forced INTEGER,
    since INTEGER NOT NULL,
    hold_until INTEGER,
    throttled_rounds INTEGER NOT NULL,
    rejected_until INTEGER,
    rejected_for INTEGER NOT NULL
) STRICT;

CREATE TABLE suspect (
    place INTEGER PRIMARY KEY,
    endpoint INTEGER NOT NULL,
    message INTEGER NOT NULL,
    crashes INTEGER NOT NULL
) STRICT;

-- The first schema, in the schema "peyk". Keys of messages and attempts are 64 bits that begin with their time, so that
-- a range of keys is a range of time. Payloads and bodies are bytea: they come out as they went in. Spans are
-- microseconds. Texts compare by their bytes.

CREATE TABLE setting (
    name text PRIMARY KEY,
    value bytea NOT NULL
);

-- Applications. Deleted ones stay, so that history can name them; their uid is free again.
CREATE TABLE app (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    org bytea NOT NULL,
    uid text COLLATE "C",
    name text NOT NULL,
    throttle_rate bigint,
    metadata text NOT NULL,
    version bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    deleted_at timestamptz
);
CREATE UNIQUE INDEX app_uid ON app (org, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX app_list ON app (org, id) WHERE deleted_at IS NULL;

-- Endpoints. Lists and overrides are packed, see src/stored/endpoint.rs; the first byte of secrets says how they are kept.
CREATE TABLE endpoint (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id bytea NOT NULL UNIQUE,
    app bigint NOT NULL,
    uid text COLLATE "C",
    url text NOT NULL,
    description text NOT NULL,
    spec_version bigint NOT NULL,
    disabled smallint,
    event_types bytea,
    channels bytea,
    throttle_rate bigint,
    metadata text NOT NULL,
    headers bytea NOT NULL,
    retry bytea NOT NULL,
    breaker bytea NOT NULL,
    timeout bigint,
    ordering smallint NOT NULL,
    secrets bytea NOT NULL,
    version bigint NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    contact_email text,
    deleted_at timestamptz,
    swept boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX endpoint_uid ON endpoint (app, uid) WHERE uid IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX endpoint_list ON endpoint (app, key);
CREATE INDEX endpoint_unswept ON endpoint (deleted_at) WHERE deleted_at IS NOT NULL AND NOT swept;

-- Where an endpoint's sends went: a URL holds for attempts begun at or after `at` and recorded after `since`.
CREATE TABLE endpoint_url (
    endpoint bigint NOT NULL,
    since bigint NOT NULL,
    at timestamptz NOT NULL,
    url text NOT NULL,
    PRIMARY KEY (endpoint, since)
);

CREATE TABLE event_type (
    org bytea NOT NULL,
    name text COLLATE "C" NOT NULL,
    description text NOT NULL,
    archived boolean NOT NULL,
    deprecated boolean NOT NULL,
    schemas text,
    feature_flag text,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org, name)
);

-- Messages, in order of acceptance. A missing payload is one that is gone; no content type means JSON. The payload is
-- not compressed: the writer has better things to do.
CREATE TABLE message (
    key bigint PRIMARY KEY,
    app bigint NOT NULL,
    accepted_at timestamptz NOT NULL,
    retention_hours bigint,
    random bytea NOT NULL,
    event_type text COLLATE "C" NOT NULL,
    event_id text COLLATE "C",
    labels bytea,
    content_type text,
    edited_from bytea,
    key_scope bytea,
    key_body bytea,
    payload bytea
);
ALTER TABLE message ALTER COLUMN payload SET STORAGE EXTERNAL;
CREATE INDEX message_of_app ON message (app, key);
CREATE UNIQUE INDEX message_event ON message (app, event_id) WHERE event_id IS NOT NULL;
CREATE INDEX message_scope ON message (key_scope) WHERE key_scope IS NOT NULL;
CREATE INDEX message_named ON message (retention_hours, key) WHERE retention_hours IS NOT NULL AND payload IS NOT NULL;

-- Pending work: queue and index in one. `manual`, here and in attempts: 0 by the policy, 1 one extra send, 2 put back
-- by a replay. Rows come and go; what they leave behind is cleared away often.
CREATE TABLE pending (
    endpoint bigint NOT NULL,
    due_at timestamptz NOT NULL,
    message bigint NOT NULL,
    age_from timestamptz NOT NULL,
    sends bigint NOT NULL,
    budget_used bigint NOT NULL,
    last_delay bigint NOT NULL,
    manual smallint NOT NULL,
    PRIMARY KEY (endpoint, due_at, message, manual)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
CREATE INDEX pending_of ON pending (message, endpoint);

-- Attempts, in order of their commit.
CREATE TABLE attempt (
    key bigint PRIMARY KEY,
    message bigint NOT NULL,
    endpoint bigint NOT NULL,
    n bigint NOT NULL,
    started_at timestamptz NOT NULL,
    took bigint NOT NULL,
    retry_after bigint,
    next_due timestamptz,
    random bytea NOT NULL,
    manual smallint NOT NULL,
    status smallint NOT NULL,
    failure smallint,
    cut smallint,
    next_term smallint,
    resent boolean NOT NULL,
    text text,
    body bytea
);
CREATE UNIQUE INDEX attempt_of ON attempt (message, endpoint, n);
CREATE INDEX attempt_to ON attempt (endpoint, key);

-- Deliveries that ended otherwise than delivered. Only dead ones stand in lists, in order of their place.
CREATE TABLE closed (
    place bigint PRIMARY KEY,
    message bigint NOT NULL,
    endpoint bigint NOT NULL,
    app bigint NOT NULL,
    at timestamptz NOT NULL,
    sends bigint NOT NULL,
    org bytea NOT NULL,
    state smallint NOT NULL,
    reason smallint NOT NULL,
    error text
);
CREATE UNIQUE INDEX closed_of ON closed (message, endpoint);
CREATE INDEX dead_of_org ON closed (org, place) WHERE state = 1;
CREATE INDEX dead_of_app ON closed (app, place) WHERE state = 1;
CREATE INDEX dead_of_endpoint ON closed (endpoint, place) WHERE state = 1;

CREATE TABLE lane_state (
    endpoint bigint PRIMARY KEY,
    open_until timestamptz,
    generation bigint NOT NULL,
    open_for bigint NOT NULL,
    failing_since timestamptz,
    forced smallint,
    since timestamptz NOT NULL,
    hold_until timestamptz,
    throttled_rounds bigint NOT NULL,
    rejected_until timestamptz,
    rejected_for bigint NOT NULL,
    warned boolean NOT NULL,
    suspended_since timestamptz,
    probe_at timestamptz
);

-- Deliveries that were in flight when a process died, in order. `sends` are those of which nothing else is known.
CREATE TABLE suspect (
    place bigint PRIMARY KEY,
    endpoint bigint NOT NULL,
    message bigint NOT NULL,
    crashes bigint NOT NULL,
    sends bigint NOT NULL
);

-- Background tasks, in order of their start. What is to be done and how far it is are packed, see src/stored/task.rs.
CREATE TABLE task (
    key bigint PRIMARY KEY,
    random bytea NOT NULL,
    org bytea NOT NULL,
    app bigint NOT NULL,
    endpoint bigint,
    status smallint NOT NULL,
    spec bytea NOT NULL,
    cursor bytea NOT NULL,
    done bigint NOT NULL,
    failed bigint NOT NULL,
    error text,
    updated_at timestamptz NOT NULL
);
CREATE INDEX task_of_org ON task (org, key);
CREATE INDEX task_running ON task (app, key) WHERE status = 1;

-- Tokens that are not good any more: single ones by their hash, and those of an application that were issued before a
-- time; an empty session stands for all of them.
CREATE TABLE revoked_token (
    hash bytea PRIMARY KEY,
    until timestamptz NOT NULL
);
CREATE INDEX revoked_until ON revoked_token (until);
CREATE TABLE expired_tokens (
    app bytea NOT NULL,
    session text COLLATE "C" NOT NULL,
    issued_before timestamptz NOT NULL,
    from_then timestamptz NOT NULL,
    PRIMARY KEY (app, session, issued_before)
);
CREATE INDEX expired_session ON expired_tokens (issued_before) WHERE session <> '';

-- Notices, in order of their commit: what was not told yet to the organisation it happened in. `about` is the kind of
-- news, `at` the time that belongs to some of them.
CREATE TABLE notice (
    place bigint PRIMARY KEY,
    org bytea NOT NULL,
    about bigint NOT NULL,
    at timestamptz,
    app_id bytea NOT NULL,
    app_uid text,
    endpoint_id bytea NOT NULL,
    endpoint_uid text,
    message_id bytea,
    event_id text,
    attempt_id bytea,
    attempt_status smallint,
    attempt_at timestamptz
);

-- E-mails that were not sent yet, in order of their commit: `about` and `at` are those of a notice.
CREATE TABLE mail (
    place bigint PRIMARY KEY,
    endpoint bigint NOT NULL,
    about bigint NOT NULL,
    at timestamptz,
    written_at timestamptz NOT NULL
);

-- Answers that were given under an idempotency key, until its time is over. `scope` and `body` are hashes of who asked,
-- where and with which key, and of what was sent; `answer` may be sealed, as secrets are. `made` is what the answer
-- tells of, packed.
CREATE TABLE answer (
    scope bytea PRIMARY KEY,
    body bytea NOT NULL,
    at timestamptz NOT NULL,
    status smallint NOT NULL,
    made bytea NOT NULL,
    answer bytea NOT NULL
);
CREATE INDEX answer_at ON answer (at);

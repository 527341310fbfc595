-- Notices, in order of their commit: what was not told yet to the organisation it happened in. `about` is the kind of
-- news, `at` the time that belongs to some of them.

CREATE TABLE notice (
    place INTEGER PRIMARY KEY,
    org BLOB NOT NULL,
    about INTEGER NOT NULL,
    at INTEGER,
    app_id BLOB NOT NULL,
    app_uid TEXT,
    endpoint_id BLOB NOT NULL,
    endpoint_uid TEXT,
    message_id BLOB,
    event_id TEXT,
    attempt_id BLOB,
    attempt_status INTEGER,
    attempt_at INTEGER
) STRICT;

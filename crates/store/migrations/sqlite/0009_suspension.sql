-- Endpoints that are suspended: since when, and when the next probe is made; and whether their owner was told before
-- that they fail. Whom to write to, and the e-mails that were not sent yet, in order of their commit: `about` and
-- `at` are those of a notice.

ALTER TABLE lane_state ADD COLUMN warned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE lane_state ADD COLUMN suspended_since INTEGER;
ALTER TABLE lane_state ADD COLUMN probe_at INTEGER;

ALTER TABLE endpoint ADD COLUMN contact_email TEXT;

CREATE TABLE mail (
    place INTEGER PRIMARY KEY,
    endpoint INTEGER NOT NULL,
    about INTEGER NOT NULL,
    at INTEGER,
    written_at INTEGER NOT NULL
) STRICT;

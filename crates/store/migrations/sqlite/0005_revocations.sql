-- Tokens that are not good any more: single ones by their hash, and those of an application that were issued before a
-- time; an empty session stands for all of them.

CREATE TABLE revoked_token (
    hash BLOB PRIMARY KEY,
    until INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX revoked_until ON revoked_token (until);
CREATE TABLE expired_tokens (
    app BLOB NOT NULL,
    session TEXT NOT NULL,
    issued_before INTEGER NOT NULL,
    from_then INTEGER NOT NULL,
    PRIMARY KEY (app, session, issued_before)
) WITHOUT ROWID, STRICT;
CREATE INDEX expired_session ON expired_tokens (issued_before) WHERE session <> '';

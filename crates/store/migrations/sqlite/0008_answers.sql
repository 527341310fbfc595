-- Answers that were given under an idempotency key, until its time is over. `scope` and `body` are hashes of who asked,
-- where and with which key, and of what was sent; `answer` may be sealed, as secrets are. `made` is what the answer
-- tells of, packed.

CREATE TABLE answer (
    number INTEGER PRIMARY KEY,
    scope BLOB NOT NULL UNIQUE,
    body BLOB NOT NULL,
    at INTEGER NOT NULL,
    status INTEGER NOT NULL,
    made BLOB NOT NULL,
    answer BLOB NOT NULL
) STRICT;

CREATE INDEX answer_at ON answer (at);

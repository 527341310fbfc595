-- Background tasks, in order of their start. What is to be done and how far it is are packed, see sqlite/tasks/pack.rs.

CREATE TABLE task (
    key INTEGER PRIMARY KEY,
    random BLOB NOT NULL,
    org BLOB NOT NULL,
    app INTEGER NOT NULL,
    endpoint INTEGER,
    status INTEGER NOT NULL,
    spec BLOB NOT NULL,
    cursor BLOB NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    error TEXT,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX task_of_org ON task (org, key);
CREATE INDEX task_running ON task (app, key) WHERE status = 1;

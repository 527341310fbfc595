-- Edits of payloads before they were sent again, by the message that each made; packed, see src/stored/edit.rs.

CREATE TABLE edit (
    message INTEGER PRIMARY KEY,
    spec BLOB NOT NULL
) STRICT;

-- Of notices about a run of refusals the endpoint, which is part of the run's name.
ALTER TABLE notice ADD COLUMN endpoint INTEGER;

-- Nodes: processes that share this database. A row is a node from its start to its end, and whoever writes holds a lock on
-- its own row until the end of the transaction: where the row is gone, so is the right to write. Slots tell keys of
-- different nodes apart.
CREATE TABLE node (
    id bigint PRIMARY KEY,
    slot smallint NOT NULL UNIQUE,
    works boolean NOT NULL,
    heartbeat timestamptz NOT NULL
) WITH (fillfactor = 20);

-- Below this key a node commits nothing more. It stands apart from the node's row, so that writing it keeps nobody from
-- saying that the node lives.
CREATE TABLE floor (
    node bigint PRIMARY KEY REFERENCES node ON DELETE CASCADE,
    key bigint NOT NULL
) WITH (fillfactor = 20);

-- Who serves the endpoints that fall into a partition; see domain::nodes.
CREATE TABLE partition (
    id smallint PRIMARY KEY,
    owner bigint
) WITH (fillfactor = 50);
INSERT INTO partition (id) SELECT generate_series(0, 255);

-- What a node wrote that others serve or keep copies of: for one node, or for the owner of a partition, who deletes what it
-- has read. `what` and the columns behind it: see src/postgres/wake.rs.
CREATE TABLE wake (
    place bigint GENERATED ALWAYS AS IDENTITY,
    node bigint,
    partition smallint,
    what smallint NOT NULL,
    app bigint,
    endpoint bigint,
    message bigint,
    at timestamptz,
    code smallint,
    count bigint
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000);
CREATE INDEX wake_of_node ON wake (node) WHERE node IS NOT NULL;
CREATE INDEX wake_of_partition ON wake (partition) WHERE partition IS NOT NULL;

-- An idempotency key names one message, whichever node it is posted to: one that ran out is taken from its message before
-- it is used again.
UPDATE message SET key_scope = NULL, key_body = NULL WHERE key_scope IS NOT NULL AND EXISTS (
    SELECT 1 FROM message AS later WHERE later.key_scope = message.key_scope AND later.key > message.key);
DROP INDEX message_scope;
CREATE UNIQUE INDEX message_scope ON message (key_scope) WHERE key_scope IS NOT NULL;

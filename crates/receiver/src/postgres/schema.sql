-- Idempotency records. Any number of sessions may run this at once, and again.
BEGIN;
SELECT pg_advisory_xact_lock(7305804385310371171);
CREATE SEQUENCE IF NOT EXISTS peyk_idempotency_fence;
CREATE TABLE IF NOT EXISTS peyk_idempotency (
  scope text NOT NULL,
  key text NOT NULL,
  fingerprint bytea NOT NULL,
  -- Larger for every new holder of the key.
  fence bigint NOT NULL,
  lease_until timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- The response; a record without status is in progress.
  status smallint,
  headers bytea,
  body bytea,
  PRIMARY KEY (scope, key)
);
CREATE INDEX IF NOT EXISTS peyk_idempotency_expires_at ON peyk_idempotency (expires_at);
COMMIT;

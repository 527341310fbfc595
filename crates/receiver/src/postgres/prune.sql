-- Deletes a bounded number of expired records, passing over those that others are deleting.
DELETE FROM peyk_idempotency
 WHERE (scope, key) IN (
   SELECT scope, key FROM peyk_idempotency
    WHERE expires_at <= clock_timestamp()
    ORDER BY expires_at LIMIT $1
      FOR UPDATE SKIP LOCKED)
RETURNING 1

-- Gives the key back, unless a response is recorded. No row if the token is stale.
WITH freed AS (
  DELETE FROM peyk_idempotency
   WHERE scope = $1 AND key = $2 AND fence = $3 AND status IS NULL
  RETURNING 1
)
SELECT 1 FROM freed
UNION ALL
SELECT 1 FROM peyk_idempotency
 WHERE scope = $1 AND key = $2 AND fence = $3 AND status IS NOT NULL

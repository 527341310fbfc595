-- Prolongs the lease of a record in progress. No row if the token is stale.
UPDATE peyk_idempotency
   SET lease_until = CASE WHEN status IS NULL
                          THEN clock_timestamp() + $4 * interval '1 microsecond'
                          ELSE lease_until END,
       expires_at = GREATEST(expires_at, clock_timestamp() + $4 * interval '1 microsecond')
 WHERE scope = $1 AND key = $2 AND fence = $3
RETURNING 1

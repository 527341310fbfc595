-- Records the response; one that is recorded stays. No row if the token is stale.
UPDATE peyk_idempotency
   SET status = COALESCE(status, $5),
       headers = COALESCE(headers, $6),
       body = COALESCE(body, $7),
       expires_at = CASE WHEN status IS NULL
                         THEN clock_timestamp() + $4 * interval '1 microsecond'
                         ELSE expires_at END
 WHERE scope = $1 AND key = $2 AND fence = $3
RETURNING 1

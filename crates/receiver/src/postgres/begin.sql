-- Takes the key, or says why not: what, a number, headers, body. No row if the record changed hands
-- while this ran.
WITH clock AS (
  SELECT clock_timestamp() AS now
), taken AS (
  INSERT INTO peyk_idempotency AS known (scope, key, fingerprint, fence, lease_until, expires_at)
  SELECT $1, $2, $3, nextval('peyk_idempotency_fence'),
         now + $4 * interval '1 microsecond',
         now + ($4 + $5) * interval '1 microsecond'
    FROM clock
  ON CONFLICT (scope, key) DO UPDATE
     SET fingerprint = excluded.fingerprint,
         fence = excluded.fence,
         lease_until = excluded.lease_until,
         expires_at = excluded.expires_at,
         status = NULL, headers = NULL, body = NULL
   WHERE known.expires_at <= clock_timestamp()
      OR (known.status IS NULL AND known.lease_until <= clock_timestamp()
          AND known.fingerprint = excluded.fingerprint AND $6)
  RETURNING fence
)
SELECT 'started', fence, NULL::bytea, NULL::bytea FROM taken
UNION ALL
SELECT CASE
         WHEN fingerprint <> $3 THEN 'mismatch'
         WHEN status IS NOT NULL THEN 'done'
         WHEN lease_until > now THEN 'running'
         ELSE 'indeterminate'
       END,
       CASE
         WHEN status IS NOT NULL THEN status
         ELSE GREATEST(0, EXTRACT(EPOCH FROM lease_until - now) * 1000000)::bigint
       END,
       headers, body
  FROM peyk_idempotency, clock
 WHERE scope = $1 AND key = $2 AND expires_at > now AND NOT EXISTS (SELECT FROM taken)
   -- A lapsed lease that may be taken over was not there yet when this statement's snapshot was.
   AND NOT (status IS NULL AND lease_until <= now AND fingerprint = $3 AND $6)

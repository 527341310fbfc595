-- Messages :first to :last of a span, each to one endpoint in turn, as peyk writes them.
SET search_path = peyk;
SET synchronous_commit = off;
BEGIN;
CREATE TEMPORARY TABLE span ON COMMIT DROP AS
SELECT nth, app, endpoint, at, ((((at / 1000000 - :epoch_s) << 8) | (at % 1000000 / 4000)) << 24) | ((nth & 65535) << 8) AS key
FROM (SELECT nth, to_endpoint[nth % array_length(to_endpoint, 1) + 1] AS endpoint,
             of_app[nth % array_length(of_app, 1) + 1] AS app, :first_us + nth * :step_us AS at
      FROM generate_series(:first::bigint, :last::bigint) AS nth,
           (SELECT array_agg(key ORDER BY key) AS to_endpoint, array_agg(app ORDER BY key) AS of_app
            FROM endpoint WHERE deleted_at IS NULL) AS all_endpoints) AS drawn;

INSERT INTO message (key, app, accepted_at, random, event_type, key_scope, key_body, payload)
SELECT key, app, 'epoch'::timestamptz + at * interval '1 microsecond', substr(sha256(int8send(key)), 1, 12), 'bench.sent',
       substr(sha256(int8send(-key)), 1, 16), substr(sha256(int8send(-key - 1)), 1, 16),
       convert_to(rpad('{"seq":"' || lpad(nth::text, 10, '0') || '","at":"0000000000000000","pad":"', :payload_bytes - 2, 'x')
                  || '"}', 'UTF8')
FROM span ORDER BY key;

INSERT INTO attempt (key, message, endpoint, n, started_at, took, next_due, random, manual, status, next_term, resent, body)
SELECT ((((sent / 1000000 - :epoch_s) << 8) | (sent % 1000000 / 4000)) << 24) | ((nth & 65535) << 8), key, endpoint, 1,
       'epoch'::timestamptz + (at + 2000) * interval '1 microsecond', 1500,
       CASE WHEN :pending THEN now() + interval '6 hours' END, substr(sha256(int8send(key + 1)), 1, 12), 0,
       CASE WHEN :pending THEN 500 ELSE 200 END, CASE WHEN :pending THEN 1 END, false, ''
FROM (SELECT *, at + :sent_after_us AS sent FROM span) AS sent ORDER BY key;

INSERT INTO pending (endpoint, due_at, message, age_from, sends, budget_used, last_delay, manual)
SELECT endpoint, now() + interval '6 hours' + nth * interval '1 millisecond', key,
       'epoch'::timestamptz + at * interval '1 microsecond', 1, 1, 21600000000, 0
FROM span WHERE :pending ORDER BY key;
COMMIT;

-- Breakers that processes share, a row for each, and their steps as functions. May be run again, by
-- any number of processes at once. All times are microseconds of the server's clock.
SELECT pg_advisory_xact_lock(7308895158390973028);

CREATE TABLE IF NOT EXISTS peyk_breaker (
  key         text PRIMARY KEY,
  gen         bigint NOT NULL,
  forced      text NOT NULL DEFAULT '',
  failures    bigint NOT NULL DEFAULT 0,
  successes   bigint NOT NULL DEFAULT 0,
  -- 0: closed.
  open_until  bigint NOT NULL DEFAULT 0,
  open_for    bigint NOT NULL DEFAULT 0,
  probes      bigint NOT NULL DEFAULT 0,
  -- The number of the probe that is out; 0: none.
  probe_out   bigint NOT NULL DEFAULT 0,
  probe_sent  bigint NOT NULL DEFAULT 0,
  probe_until bigint NOT NULL DEFAULT 0,
  prober      text NOT NULL DEFAULT '',
  since       bigint NOT NULL,
  used        bigint NOT NULL,
  -- The first generation; 0: not known.
  born        bigint NOT NULL DEFAULT 0
);
ALTER TABLE peyk_breaker ADD COLUMN IF NOT EXISTS born bigint NOT NULL DEFAULT 0;

CREATE OR REPLACE FUNCTION peyk_breaker_now() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- The row, locked until the end of the statement that calls; one that is not there is born closed.
-- It may wait for the lock: a time that is compared with the row's is read after it. No two lives of one key share a generation.
CREATE OR REPLACE FUNCTION peyk_breaker_load(k text) RETURNS peyk_breaker LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker;
  t bigint;
BEGIN
  LOOP
    SELECT * INTO b FROM peyk_breaker WHERE key = k FOR UPDATE;
    IF FOUND THEN
      RETURN b;
    END IF;
    -- Now, since the look may have waited for the end of a life that the new one must come after.
    t := peyk_breaker_now();
    INSERT INTO peyk_breaker (key, gen, born, since, used)
      VALUES (k, t / 1000, t / 1000, t, t)
      ON CONFLICT (key) DO NOTHING;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION peyk_breaker_save(b peyk_breaker) RETURNS void LANGUAGE sql AS $$
  UPDATE peyk_breaker SET gen = b.gen, forced = b.forced, failures = b.failures,
    successes = b.successes, open_until = b.open_until, open_for = b.open_for, probes = b.probes,
    probe_out = b.probe_out, probe_sent = b.probe_sent, probe_until = b.probe_until,
    prober = b.prober, since = b.since, used = peyk_breaker_now()
  WHERE key = b.key
$$;

-- Begins a generation; 0 for closed.
CREATE OR REPLACE FUNCTION peyk_breaker_turn(b peyk_breaker, until bigint, t bigint)
RETURNS peyk_breaker LANGUAGE plpgsql AS $$
BEGIN
  b.open_until := until;
  b.gen := b.gen + 1;
  b.probe_out := 0;
  b.successes := 0;
  b.since := t;
  RETURN b;
END $$;

-- Whether a call may go: what, the generation, the number of the probe or what is left to wait.
CREATE OR REPLACE FUNCTION peyk_breaker_admit(
  k text, lease bigint, me text, OUT what text, OUT generation bigint, OUT number bigint
) LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker;
  t bigint := peyk_breaker_now();
BEGIN
  what := 'closed';
  number := 0;
  -- The common case, with a look and no lock: it is closed. That it is used is noted once a minute.
  SELECT gen INTO generation FROM peyk_breaker
    WHERE key = k AND (forced = 'closed' OR forced = '' AND open_until = 0)
      AND used > t - 60000000;
  IF FOUND THEN
    RETURN;
  END IF;
  b := peyk_breaker_load(k);
  -- Anew, since whoever held the row may have sent a probe after the time above.
  t := peyk_breaker_now();
  IF b.forced = 'open' THEN
    what := 'forced';
  ELSIF b.forced = '' AND b.open_until <> 0 THEN
    -- A clock set back by more than the lease ends it; a smaller step is no reason for another.
    IF b.probe_out <> 0 AND t < b.probe_until
      AND t + (b.probe_until - b.probe_sent) >= b.probe_sent THEN
      what := 'out';
      number := b.probe_until - t;
    ELSIF b.probe_out <> 0 OR b.successes > 0 OR t >= b.open_until
      OR t + b.open_for < b.since THEN
      b.probes := b.probes + 1;
      b.probe_out := b.probes;
      b.probe_sent := t;
      b.probe_until := t + lease;
      b.prober := me;
      what := 'probe';
      number := b.probes;
    ELSE
      what := 'open';
      number := b.open_until - t;
    END IF;
  END IF;
  generation := b.gen;
  PERFORM peyk_breaker_save(b);
END $$;

-- The probe that was out proved nothing: the next call probes.
CREATE OR REPLACE FUNCTION peyk_breaker_let_probe(b peyk_breaker) RETURNS peyk_breaker
LANGUAGE plpgsql AS $$
BEGIN
  b.probe_out := 0;
  b.open_until := least(b.open_until, peyk_breaker_now());
  RETURN b;
END $$;

-- Gives the probe back that `me` was let out as, if it is still out, and says whether it was.
CREATE OR REPLACE FUNCTION peyk_breaker_release(k text, me text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker := peyk_breaker_load(k);
BEGIN
  IF b.probe_out = 0 OR b.prober <> me THEN
    RETURN false;
  END IF;
  b := peyk_breaker_let_probe(b);
  PERFORM peyk_breaker_save(b);
  RETURN true;
END $$;

-- Tells whoever listens to peyk_breaker.
CREATE OR REPLACE FUNCTION peyk_breaker_tell(b peyk_breaker, what text) RETURNS void
LANGUAGE sql AS $$
  SELECT pg_notify('peyk_breaker', left(b.key, 1000) || ' ' || b.gen || ' ' || what)
$$;

-- Takes results of ordinary calls in: the new state and its cause, or two empty texts.
CREATE OR REPLACE FUNCTION peyk_breaker_calls(
  k text, rules bigint[], of_gen bigint, runs bigint[], succeeded boolean,
  OUT moved text, OUT cause text, OUT generation bigint
) LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker := peyk_breaker_load(k);
  t bigint := peyk_breaker_now();
  opens boolean := false;
BEGIN
  moved := '';
  cause := '';
  IF of_gen = b.gen THEN
    FOR at IN 1..3 LOOP
      -- Before the second and the third run there was a success.
      EXIT WHEN at > 1 AND NOT succeeded;
      IF at > 1 THEN
        b.failures := 0;
      END IF;
      -- Of a long run no more than can matter.
      b.failures := b.failures + least(runs[at], rules[1]);
      opens := runs[at] > 0 AND b.failures >= rules[1] AND b.forced = '' AND b.open_until = 0;
      EXIT WHEN opens;
    END LOOP;
  END IF;
  IF opens THEN
    b.open_for := rules[2];
    b := peyk_breaker_turn(b, t + b.open_for, t);
    moved := 'open';
    cause := 'tripped';
    PERFORM peyk_breaker_tell(b, moved);
  END IF;
  generation := b.gen;
  PERFORM peyk_breaker_save(b);
END $$;

-- Takes the end of a probe in: the new state and its cause, or two empty texts.
CREATE OR REPLACE FUNCTION peyk_breaker_probe(
  k text, rules bigint[], of_gen bigint, lease bigint, vote text,
  OUT moved text, OUT cause text, OUT generation bigint
) LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker := peyk_breaker_load(k);
  t bigint := peyk_breaker_now();
BEGIN
  moved := '';
  cause := '';
  IF of_gen = b.gen AND lease = b.probe_out THEN
    IF vote = 'failure' THEN
      b.failures := b.failures + 1;
      b.open_for := least(b.open_for * 2, rules[3]);
      b := peyk_breaker_turn(b, t + b.open_for, t);
      moved := 'open';
      cause := 'failed';
    ELSE
      b := peyk_breaker_let_probe(b);
      IF vote = 'success' THEN
        b.failures := 0;
        b.successes := b.successes + 1;
        IF b.successes >= rules[4] THEN
          b := peyk_breaker_turn(b, 0, t);
          moved := 'closed';
          cause := 'succeeded';
        END IF;
      END IF;
    END IF;
  END IF;
  IF moved <> '' THEN
    PERFORM peyk_breaker_tell(b, moved);
  END IF;
  generation := b.gen;
  PERFORM peyk_breaker_save(b);
END $$;

-- A process opened it while the server was away: with an open time, of which so much is left.
CREATE OR REPLACE FUNCTION peyk_breaker_opened(
  k text, rules bigint[], of_gen bigint, span bigint, remaining bigint,
  OUT moved text, OUT cause text, OUT generation bigint
) LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker := peyk_breaker_load(k);
  t bigint := peyk_breaker_now();
BEGIN
  moved := '';
  cause := '';
  IF of_gen = b.gen AND b.forced = '' AND b.open_until = 0 THEN
    b.open_for := least(greatest(span, rules[2]), rules[3]);
    b := peyk_breaker_turn(b, t + least(remaining, b.open_for), t);
    moved := 'open';
    cause := 'tripped';
    PERFORM peyk_breaker_tell(b, moved);
  END IF;
  generation := b.gen;
  PERFORM peyk_breaker_save(b);
END $$;

-- Looks. The older form had no column for what is new.
DROP FUNCTION IF EXISTS peyk_breaker_view(text);
CREATE FUNCTION peyk_breaker_view(
  k text, OUT phase text, OUT generation bigint, OUT forced text, OUT retry_in bigint,
  OUT failures bigint, OUT fresh boolean
) LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker := peyk_breaker_load(k);
BEGIN
  phase := CASE
    WHEN b.forced = 'open' THEN 'open'
    WHEN b.forced = 'closed' OR b.open_until = 0 THEN 'closed'
    WHEN b.probe_out <> 0 THEN 'half_open'
    ELSE 'open'
  END;
  generation := b.gen;
  forced := b.forced;
  retry_in := greatest(0, b.open_until - peyk_breaker_now());
  failures := b.failures;
  fresh := b.gen = b.born;
END $$;

-- Sets the state by hand, or with an empty text gives it back to the rules.
CREATE OR REPLACE FUNCTION peyk_breaker_force(k text, hand text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  b peyk_breaker := peyk_breaker_load(k);
BEGIN
  b.forced := hand;
  b.since := peyk_breaker_now();
  PERFORM peyk_breaker_tell(b, 'forced');
  PERFORM peyk_breaker_save(b);
END $$;

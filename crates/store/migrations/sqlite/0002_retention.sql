-- Retention. Messages that named how long their payload is kept, by that period and then by age, as long as the
-- payload is there; the others cost nothing here.

CREATE INDEX message_named ON message (retention_days) WHERE retention_days IS NOT NULL AND payload IS NOT NULL;

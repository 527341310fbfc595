-- Tags and a time of delivery stand behind the channels, in one column before the payload; see sqlite/labels.rs.
-- Payloads may be kept for hours; the period of one that is gone is not looked at any more.

ALTER TABLE message RENAME COLUMN channels TO labels;
ALTER TABLE message RENAME COLUMN retention_days TO retention_hours;
UPDATE message INDEXED BY message_named SET retention_hours = retention_hours * 24
WHERE retention_hours IS NOT NULL AND payload IS NOT NULL;

-- Sends of a suspect that were under way when a process died: none of them has an attempt. Of suspects from before as many
-- are known as crashes with it alone, and the first one.

ALTER TABLE suspect ADD COLUMN sends INTEGER NOT NULL DEFAULT 0;
UPDATE suspect SET sends = crashes + 1;

-- These rows lie before the figures, as those do that were there before figures were kept.
SET search_path = peyk;
UPDATE figure_mark SET up_to = last, writing = last
FROM (SELECT greatest((SELECT max(key) FROM message), (SELECT max(key) FROM attempt)) AS last) AS keys;
VACUUM (ANALYZE) message;
VACUUM (ANALYZE) attempt;
VACUUM (ANALYZE) pending;
CHECKPOINT;

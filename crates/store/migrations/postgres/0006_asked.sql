-- Whether a node answers the API: what a tenant may ask of all of them in a second is shared out among those that do.
ALTER TABLE node ADD COLUMN is_asked boolean NOT NULL DEFAULT true;

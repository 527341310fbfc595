-- Where a node takes posts from other nodes, `host:port`, and the SHA-256 of the certificate that it shows and they check;
-- neither of a node that takes none.
ALTER TABLE node ADD COLUMN address text, ADD COLUMN fingerprint bytea;

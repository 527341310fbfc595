-- The tables of an open-source Svix server that an import reads, with the columns that it has today
-- and a few rows of each kind. Secrets are made of repeated bytes.
CREATE TABLE application (
    id varchar NOT NULL PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(), org_id varchar NOT NULL, uid varchar,
    name varchar NOT NULL, rate_limit integer, deleted boolean NOT NULL DEFAULT false
);
CREATE TABLE applicationmetadata (
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    id varchar NOT NULL PRIMARY KEY, data jsonb NOT NULL
);
CREATE TABLE endpoint (
    id varchar NOT NULL PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(), app_id varchar NOT NULL, key bytea NOT NULL,
    url varchar NOT NULL, description varchar NOT NULL DEFAULT '', event_types_ids jsonb,
    version integer NOT NULL DEFAULT 1, rate_limit integer, deleted boolean NOT NULL DEFAULT false,
    disabled boolean NOT NULL DEFAULT false, first_failure_at timestamptz, uid varchar,
    old_keys jsonb, channels jsonb, headers jsonb, filter text
);
CREATE TABLE endpointmetadata (
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    id varchar NOT NULL PRIMARY KEY, data jsonb NOT NULL
);
CREATE TABLE eventtype (
    created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now(),
    id varchar NOT NULL PRIMARY KEY, org_id varchar NOT NULL, description varchar NOT NULL,
    deleted boolean NOT NULL DEFAULT false, schemas json, name varchar NOT NULL,
    feature_flag text, deprecated boolean NOT NULL DEFAULT false, retry_schedule jsonb
);

INSERT INTO eventtype (id, org_id, description, deleted, schemas, name, feature_flag, deprecated)
VALUES
    ('evtype_1', 'org_a', 'Paid.', false, '{"1": {"type": "object", "multipleOf": 1.0e2}}',
     'invoice.paid', 'beta', true),
    ('evtype_2', 'org_a', 'Old.', true, NULL, 'invoice.old', NULL, false),
    ('evtype_4', 'org_a', 'No schema.', false, '{"1": {"type": 5}}', 'invoice.bad', NULL, false),
    ('evtype_3', 'org_b', 'Of others.', false, NULL, 'other.type', NULL, false),
    ('evtype_0', 'org_00000000000SvixManagement00', 'Its own.', false, NULL, 'endpoint.created',
     NULL, false);
INSERT INTO application (id, org_id, uid, name, rate_limit, deleted) VALUES
    ('app_1', 'org_a', 'acme', 'Acme', 50, false),
    ('app_2', 'org_a', NULL, 'Without uid', NULL, false),
    ('app_3', 'org_a', NULL, 'Gone', NULL, true),
    ('app_4', 'org_b', 'acme', 'Of others', NULL, false);
INSERT INTO applicationmetadata (id, data) VALUES ('app_1', '{"plan": "gold"}');
INSERT INTO endpoint (id, app_id, key, url, description, event_types_ids, version, rate_limit,
    disabled, uid, old_keys, channels, headers) VALUES
    ('ep_1', 'app_1', decode(repeat('11', 24), 'hex'), 'http://Example.COM/hook', 'First',
     '["invoice.paid", "invoice.old", "never.seen"]', 3, 7, true, 'first',
     -- One that has ended, and one that was written by an early version.
     jsonb_build_array(
       jsonb_build_object('signingKey', encode(decode('01' || repeat('22', 24), 'hex'), 'base64'),
         'expiration', now() - interval '1 hour'),
       jsonb_build_object('signingKey', 'whsec_' || encode(decode(repeat('33', 24), 'hex'), 'base64'),
         'expiration', now() + interval '1 hour')),
     '["one"]', '{"X-Own": "1", "X-Api-Key": "hidden"}');
INSERT INTO endpoint (id, app_id, key, url, deleted, filter) VALUES
    ('ep_2', 'app_2', decode('01' || repeat('44', 30), 'hex'), 'https://example.com/two', false, NULL),
    ('ep_3', 'app_2', decode(repeat('55', 24), 'hex'), 'https://example.com/gone', true, NULL),
    ('ep_4', 'app_2', decode(repeat('66', 24), 'hex'), 'https://example.com/filter', false, 'x > 1'),
    ('ep_5', 'app_2', decode('07' || repeat('77', 30), 'hex'), 'https://example.com/kind', false, NULL),
    ('ep_6', 'app_3', decode(repeat('88', 24), 'hex'), 'https://example.com/gone', false, NULL),
    ('ep_7', 'app_4', decode(repeat('99', 24), 'hex'), 'https://example.com/others', false, NULL);
INSERT INTO endpoint (id, app_id, key, url, event_types_ids) VALUES
    ('ep_8', 'app_2', decode(repeat('88', 24), 'hex'), 'https://example.com/bad', '["invoice.bad"]');
INSERT INTO endpointmetadata (id, data) VALUES ('ep_1', '{"team": "a"}');

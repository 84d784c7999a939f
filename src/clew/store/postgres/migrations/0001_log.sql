-- The same log as in `migrations/`, which explains the tables, in PostgreSQL's words. There are no foreign keys: their locks
-- would make writers wait for each other, and `clew doctor` counts what they would forbid.
-- Ids and names sort by their bytes (collate "C"), as they do in SQLite.

-- What the statements of `queries.sql` call so in SQLite, too.
create function from_hex(text) returns bytea language sql immutable parallel safe
    as $$ select decode($1, 'hex') $$;
create function hex(bytea) returns text language sql immutable parallel safe
    as $$ select encode($1, 'hex') $$;
-- `strict` and `rows 2`: the planner is not to look inside, nor to expect so many that it would rather read a whole table.
create function json_each(text) returns table (value text) language sql immutable parallel safe strict rows 2
    as $$ select json_array_elements_text($1::json) $$;

create table meta (
    key   text collate "C" primary key,
    value bytea not null
);

create table scope (
    id   integer generated always as identity primary key,
    name text collate "C" not null unique
);

create table body (
    id      bigint generated always as identity primary key,
    scope   integer not null,
    content bytea not null,
    kind    text collate "C" not null,
    role    text collate "C" not null,
    packed  integer not null,
    size    integer not null,
    data    bytea not null,
    purged  double precision,
    unique (scope, content)
);
alter table body alter column data set storage external;  -- it is compressed already

-- The words of a body, in as many parts as it takes: a tsvector has an upper limit. One more word is `#` and the number of
-- its scope: so an index finds what a tenant said without looking at what others did.
create table body_text (
    body  bigint not null,
    part  integer not null,
    words tsvector not null,
    primary key (body, part)
);

create table node (
    scope   integer not null,
    id      bytea not null,
    content bytea not null,
    branch  text collate "C" not null,
    opens   text,                          -- JSON, and no jsonb: that would refuse \u0000 and lone surrogates
    primary key (scope, id)
);
create index node_content on node (scope, content);

create table frame (
    scope   integer not null,
    digest  bytea not null,
    data    bytea not null,
    primary key (scope, digest)
);
alter table frame alter column data set storage external;

create table branch (
    id         text collate "C" primary key,
    scope      integer not null,
    session    text collate "C",
    parent     text collate "C",
    parent_seq integer,
    cause      text collate "C" not null,
    at         double precision not null
);
create index branch_session on branch (scope, session);

create table event (
    branch text collate "C" not null,
    seq    integer not null,
    kind   text collate "C" not null,
    start  integer,
    stop   integer,
    old    bytea,
    new    bytea,
    note   text,                           -- JSON
    at     double precision not null,
    primary key (branch, seq)
);

create table handle (
    scope  integer not null,
    id     bytea not null,
    branch text collate "C" not null,
    seq    integer not null,
    primary key (scope, id, branch, seq)
);

create table head (
    scope  integer not null,
    chain  bytea not null,
    branch text collate "C" not null,
    seq    integer not null,
    primary key (scope, chain, branch, seq)
);

create table learned (
    scope integer not null,
    kind  text collate "C" not null,
    name  text collate "C" not null,
    value text not null,                   -- JSON
    at    double precision not null,
    primary key (scope, kind, name)
);

create table purge (
    id       bigint generated always as identity primary key,
    scope    integer not null,
    at       double precision not null,
    asked    text not null,
    reason   text not null,
    branches integer not null,
    events   integer not null,
    nodes    integer not null,
    bodies   integer not null,
    frames   integer not null,
    bytes    bigint not null,
    wiped    integer not null default 0
);

create table tombstone (
    scope integer not null,
    id    text collate "C" not null,
    purge bigint not null,
    primary key (scope, id)
);

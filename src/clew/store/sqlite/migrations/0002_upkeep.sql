-- What providers taught us: a window from an overflow error, how far a count was off.
create table learned (
    scope integer not null references scope,
    kind  text not null,
    name  text not null,
    value text not null,                   -- JSON
    at    real not null,
    primary key (scope, kind, name)
) without rowid;

-- Every purge that was made: what was asked for, and what went.
create table purge (
    id       integer primary key,
    scope    integer not null references scope,
    at       real not null,
    asked    text not null,
    reason   text not null,
    branches integer not null,
    events   integer not null,
    nodes    integer not null,
    bodies   integer not null,
    frames   integer not null,
    bytes    integer not null,
    wiped    integer not null default 0    -- 1: the bytes are gone from the file, too
);

-- What is no more: ids of nodes, spans, bodies and branches, and not a word of what they said.
create table tombstone (
    scope integer not null references scope,
    id    text not null,
    purge integer not null references purge,
    primary key (scope, id)
) without rowid;

-- When its words were purged, if they were: `data` then says so in their place.
alter table body add column purged real;

-- One append-only log. Bodies are kept once by content, nodes give them a place, events say what happened on a branch.
-- Digests are 16 raw bytes; lists of them are packed end to end.

create table meta (
    key   text primary key,
    value blob not null
) without rowid;

create table scope (
    id   integer primary key,
    name text not null unique
);

-- What was said, once, whoever said it how often.
create table body (
    id      integer primary key,
    scope   integer not null references scope,
    content blob not null,
    kind    text not null,
    role    text not null,
    packed  integer not null,              -- 1: data is zlib-compressed
    size    integer not null,              -- of data, before compression
    data    blob not null,                 -- the item as JSON
    unique (scope, content)
);

create virtual table body_text using fts5 (text, content = '', tokenize = "unicode61 tokenchars '_'");

-- A content at a place in history; `branch` is where it was first said, `opens` the message it opened there.
create table node (
    scope   integer not null references scope,
    id      blob not null,
    content blob not null,
    branch  text not null,
    opens   text,                          -- JSON
    primary key (scope, id)
) without rowid;
create index node_content on node (scope, content);

create table frame (
    scope   integer not null references scope,
    digest  blob not null,
    data    blob not null,                 -- zlib-compressed JSON
    primary key (scope, digest)
) without rowid;

-- A line of history. It has its parent's events up to `parent_seq`, then its own.
create table branch (
    id         text primary key,
    scope      integer not null references scope,
    session    text,
    parent     text references branch,
    parent_seq integer,
    cause      text not null,              -- start, fork
    at         real not null
) without rowid;
create index branch_session on branch (scope, session);

-- said: `new` was appended.  client: the client put `new` in place of its items start..stop.
-- edit: `new` stands in for `old`.  revert: edits that made `old` no longer apply.  pin, unpin: `old`.
-- call: a request was made.  usage: what the provider reported for the call at `start`.
create table event (
    branch text not null references branch,
    seq    integer not null,
    kind   text not null,
    start  integer,
    stop   integer,
    old    blob,
    new    blob,
    note   text,                           -- JSON
    at     real not null,
    primary key (branch, seq)
) without rowid;

-- By which id a span can be recalled: the handle a stand-in names, and the stand-in itself.
create table handle (
    scope  integer not null references scope,
    id     blob not null,
    branch text not null,
    seq    integer not null,
    primary key (scope, id, branch, seq)
) without rowid;

-- Histories we have seen or sent, by chain digest: whoever sends one of them again, and more, is recognised.
create table head (
    scope  integer not null references scope,
    chain  blob not null,
    branch text not null,
    seq    integer not null,
    primary key (scope, chain, branch, seq)
) without rowid;

-- The same as `migrations/0003_sessions.sql`, which explains it.
create table session (
    id         text collate "C" primary key,
    scope      integer not null,
    branch     text collate "C" not null,
    seq        integer not null,
    parent     text collate "C",
    parent_seq integer,
    cause      text collate "C" not null,
    method     text not null default '',
    at         double precision not null,
    ended      double precision,
    ended_by   text collate "C",
    undone     double precision,
    model      text not null default '',
    items      integer not null default 0,
    calls      integer not null default 0,
    sent       bigint not null default 0,
    input      bigint not null default 0,
    output     bigint not null default 0,
    cached     bigint not null default 0,
    cost       double precision not null default 0
);
create unique index session_place on session (branch, seq);
create index session_parent on session (scope, parent);

alter table branch add column tags text not null default '[]';
alter table branch add column archived double precision;

insert into session (id, scope, branch, seq, parent, parent_seq, cause, at, calls, items)
select b.id, b.scope, b.id, coalesce(b.parent_seq + 1, 0), b.parent, b.parent_seq, b.cause, b.at,
       (select count(*) from event e where e.branch = b.id and e.kind = 'call'),
       (select coalesce(sum(length(e.new)) / 16, 0) from event e where e.branch = b.id and e.kind = 'said')
from branch b;

-- For a search through the whole scope; one through a conversation knows where to look.
create index body_text_words on body_text using gin (words);

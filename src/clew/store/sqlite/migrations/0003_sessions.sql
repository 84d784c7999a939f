-- A stretch of a branch, from one compaction to the next. The log says where each begins (kind `session`); this is what
-- listings read, kept in the same transaction. `parent` is a session; `parent_seq` the last event of its branch before this.
create table session (
    id         text primary key,           -- the first one of a branch has the branch's
    scope      integer not null references scope,
    branch     text not null references branch,
    seq        integer not null,           -- its first event
    parent     text,
    parent_seq integer,
    cause      text not null,              -- start, compaction, handoff, fork, task, subagent, import
    method     text not null default '',
    at         real not null,
    ended      real,
    ended_by   text,
    undone     real,
    model      text not null default '',
    items      integer not null default 0,
    calls      integer not null default 0,
    sent       integer not null default 0,
    input      integer not null default 0,
    output     integer not null default 0,
    cached     integer not null default 0,
    cost       real not null default 0
) without rowid;
create unique index session_place on session (branch, seq);
create index session_parent on session (scope, parent);

alter table branch add column tags text not null default '[]';  -- JSON
alter table branch add column archived real;

-- Branches that are there already: one session each, what they came to unknown but for calls and items.
insert into session (id, scope, branch, seq, parent, parent_seq, cause, at, calls, items)
select b.id, b.scope, b.id, coalesce(b.parent_seq + 1, 0), b.parent, b.parent_seq, b.cause, b.at,
       (select count(*) from event e where e.branch = b.id and e.kind = 'call'),
       (select coalesce(sum(length(e.new)) / 16, 0) from event e where e.branch = b.id and e.kind = 'said')
from branch b;

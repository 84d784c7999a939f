-- A branch begins with a session of its own, whatever happens first on it. If that is a compaction (of a fork), two sessions
-- begin at one event: the one that the branch opens with, in which nothing happened, and the one of the compaction.
alter table session add column opening integer not null default 0;

update session set opening = 1
where not exists (
    select 1 from event e where e.branch = session.branch and e.seq = session.seq and e.kind = 'session');

drop index session_place;
create unique index session_place on session (branch, seq, opening);

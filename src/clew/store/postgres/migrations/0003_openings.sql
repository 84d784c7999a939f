-- The same as `migrations/0004_openings.sql`, which explains it.
alter table session add column opening integer not null default 0;

update session set opening = 1
where not exists (
    select 1 from event e where e.branch = session.branch and e.seq = session.seq and e.kind = 'session');

drop index session_place;
create unique index session_place on session (branch, seq, opening);

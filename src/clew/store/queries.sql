-- Every question and every write, by name. `:scope` is a tenant's name, `:owner` its number.
-- `cross join` after json_each: the list given leads, the index follows; left free, the planner may scan the table.
-- `indexed by` for the same reason: a scope alone is no key. Other databases get the statements without these two.

-- name: secret
select value from meta where key = 'secret';

-- name: find
select lower(hex(h.chain)), h.branch, h.seq, b.at
from json_each(:chains) j
cross join head h on h.scope = (select id from scope where name = :scope) and h.chain = from_hex(j.value)
cross join branch b on b.id = h.branch and b.session is null;

-- name: alike
select n.branch, count(distinct n.content) as hits
from json_each(:contents) j
cross join node n indexed by node_content
    on n.scope = (select id from scope where name = :scope) and n.content = from_hex(j.value)
cross join branch b on b.id = n.branch and b.session is null
where not exists (  -- what is said everywhere, such as "continue", tells nothing
    select 1 from node o indexed by node_content
    where o.scope = (select id from scope where name = :scope) and o.content = from_hex(j.value)
    limit 1 offset 100)
group by n.branch
order by hits desc, max(b.at) desc  -- not by id: that is random
limit 3;

-- name: session
-- Whatever the clock said: a branch that another one of its name forked from is older than that.
select b.id from branch b
where b.scope = (select id from scope where name = :scope) and b.session = :session
order by (select count(*) from branch c where c.scope = b.scope and c.session = b.session and c.parent = b.id) > 0,
         b.at desc
limit 1;

-- name: branch
select session from branch
where id = :branch and scope = (select id from scope where name = :scope);

-- name: last_purge
select coalesce(max(id), 0) from purge where scope = (select id from scope where name = :scope);

-- name: newest_event
select max(seq) from event where branch = :branch;

-- name: events
with recursive line (id, until) as (
    select id, cast(:until as bigint) from branch where id = :branch and scope = (select id from scope where name = :scope)
    union all
    select b.parent, case when b.parent_seq < line.until then b.parent_seq else line.until end
    from line join branch b on b.id = line.id
    where b.parent is not null
)
select line.id, e.branch, e.seq, e.at, e.kind, e.start, e.stop, e.old, e.new, e.note
from line join event e on e.branch = line.id and e.seq <= line.until and e.seq >= :since
order by e.seq;

-- name: edits_at
with recursive line (id, until) as (
    select id, cast(:until as bigint) from branch where id = :branch and scope = (select id from scope where name = :scope)
    union all
    select b.parent, case when b.parent_seq < line.until then b.parent_seq else line.until end
    from line join branch b on b.id = line.id
    where b.parent is not null
)
select line.id, e.branch, e.seq, e.kind, e.old, e.new, e.note
from json_each(:seqs) j
cross join line on true
cross join event e on e.branch = line.id and e.seq = cast(j.value as bigint) and e.seq <= line.until
where e.kind in ('edit', 'chapter')
order by e.seq;

-- name: nearest_checkpoint
with recursive line (id, until) as (
    select id, cast(:until as bigint) from branch where id = :branch and scope = (select id from scope where name = :scope)
    union all
    select b.parent, case when b.parent_seq < line.until then b.parent_seq else line.until end
    from line join branch b on b.id = line.id
    where b.parent is not null
)
select c.branch, c.seq, c.data from line join checkpoint c on c.branch = line.id
where c.seq <= line.until + 1 and c.version = :version
order by c.seq desc
limit 1;

-- name: newest_checkpoint
with recursive line (id, until) as (
    select id, cast(:until as bigint) from branch where id = :branch and scope = (select id from scope where name = :scope)
    union all
    select b.parent, case when b.parent_seq < line.until then b.parent_seq else line.until end
    from line join branch b on b.id = line.id
    where b.parent is not null
)
select max(c.seq) from line join checkpoint c on c.branch = line.id
where c.seq <= line.until + 1 and c.version = :version;

-- name: put_checkpoint
insert into checkpoint (branch, seq, version, data) values (:branch, :seq, :version, :data)
on conflict (branch) do update set seq = excluded.seq, version = excluded.version, data = excluded.data;

-- name: own_events
select cast(:branch as text), branch, seq, at, kind, start, stop, old, new, note from event
where branch = (select id from branch where id = :branch and scope = (select id from scope where name = :scope))
  and seq <= :until
order by seq;

-- name: newer_events
select cast(:branch as text), branch, seq, kind, start, stop, old, new, note from event
where branch = :branch and seq >= :since
order by seq;

-- name: nodes
select lower(hex(n.id)), lower(hex(n.content)), n.opens, b.kind, b.role, b.packed, b.data, b.purged is null
from json_each(:ids) j
cross join node n on n.scope = (select id from scope where name = :scope) and n.id = from_hex(j.value)
cross join body b on b.scope = n.scope and b.content = n.content;

-- name: contents
select lower(hex(n.id)), lower(hex(n.content))
from json_each(:ids) j
cross join node n on n.scope = (select id from scope where name = :scope) and n.id = from_hex(j.value);

-- name: frame
select data from frame
where scope = (select id from scope where name = :scope) and digest = from_hex(:digest);

-- name: sources
select e.old, e.new from handle h
join event e on e.branch = h.branch and e.seq = h.seq
where h.scope = (select id from scope where name = :scope) and h.id = from_hex(:id)
order by h.branch, h.seq
limit 1;

-- name: resolve
select lower(hex(id)) from node
where scope = (select id from scope where name = :scope) and id between from_hex(:low) and from_hex(:high)
union
select lower(hex(id)) from handle
where scope = (select id from scope where name = :scope) and id between from_hex(:low) and from_hex(:high);

-- name: branches
select b.id, b.session, b.parent, b.cause, b.at,
       (select count(*) from event e where e.branch = b.id and e.kind = 'call'), b.parent_seq
from branch b
where b.scope = (select id from scope where name = :scope)
order by b.at desc;

-- name: add_scope
-- Looked for first: who inserts in vain uses up a number.
insert into scope (name) select cast(:scope as text) where not exists (select 1 from scope where name = :scope)
on conflict do nothing;

-- name: scope
select id from scope where name = :scope;

-- name: add_branch
-- Whatever the clock says: what opens under a name now is later than all that did before.
insert into branch (id, scope, session, parent, parent_seq, cause, at)
select :branch, s.id, :session, :parent, :parent_seq, :cause, coalesce(
    (select max(b.at) + 0.00001 from branch b where b.scope = s.id and b.session = :after and b.at >= :at), :at)
from scope s where s.name = :scope
on conflict do nothing
returning id;

-- name: add_event
insert into event (branch, seq, kind, start, stop, old, new, note, at)
values (:branch, :seq, :kind, :start, :stop, :old, :new, :note, :at);

-- name: add_node
insert into node (scope, id, content, branch, opens)
values ((select id from scope where name = :scope), from_hex(:id), from_hex(:content), :branch, :opens)
on conflict do nothing;

-- name: add_said_again
insert into said_again (scope, id, branch)
select n.scope, n.id, :branch from json_each(:ids) j
cross join node n on n.scope = (select id from scope where name = :scope) and n.id = from_hex(j.value)
where n.branch <> :branch
on conflict do nothing;

-- name: add_frame_use
insert into frame_use (scope, digest, branch) values (:owner, from_hex(:digest), :branch)
on conflict do nothing;

-- name: known_bodies
select j.value, b.purged is null
from json_each(:contents) j
cross join body b on b.scope = (select id from scope where name = :scope) and b.content = from_hex(j.value);

-- name: forget_purged_body
delete from body where scope = :owner and content = from_hex(:content);

-- name: add_body
insert into body (scope, content, kind, role, packed, size, data)
values (:owner, from_hex(:content), :kind, :role, :packed, :size, :data)
on conflict do nothing;

-- name: add_handle
insert into handle (scope, id, branch, seq) values (:owner, from_hex(:id), :branch, :seq)
on conflict do nothing;

-- name: add_head
insert into head (scope, chain, branch, seq) values (:owner, from_hex(:chain), :branch, :seq)
on conflict do nothing;

-- name: known_frames
select j.value from json_each(:digests) j
cross join frame f on f.scope = (select id from scope where name = :scope) and f.digest = from_hex(j.value);

-- name: add_frame
insert into frame (scope, digest, data) values (:owner, from_hex(:digest), :data)
on conflict do nothing;

-- name: learn
insert into learned (scope, kind, name, value, at) values (:owner, :kind, :name, :value, :at)
on conflict (scope, kind, name) do update set value = excluded.value, at = excluded.at;

-- name: learned
select name, value from learned
where scope = (select id from scope where name = :scope) and kind = :kind;

-- --- purging: `going` has the branches that go, who inherits from each, and up to which event -----------------------
-- What belongs to a branch is found by the branch alone: with the scope beside it, PostgreSQL may read all of the scope.

-- name: lines_among
select b.id, b.parent, b.parent_seq, b.cause from json_each(:branches) j
cross join branch b on b.id = j.value and b.scope = :owner
union
select b.id, b.parent, b.parent_seq, b.cause from json_each(:branches) j
cross join branch b on b.parent = j.value and b.scope = :owner;

-- name: idle
-- Nothing happens on a branch before it is opened: only those opened before then are looked at.
select b.id from branch b
where b.scope = (select id from scope where name = :scope) and b.at < :before
  and coalesce((select e.at from event e where e.branch = b.id order by e.seq desc limit 1), b.at) < :before
order by b.at;

-- name: idle_among
-- With what goes on from a branch: what is told there of it is needed while that is at work.
with recursive line (first, id) as (
    select b.id, b.id from json_each(:branches) j cross join branch b on b.id = j.value and b.scope = :owner
    union
    select line.first, s.branch from line
    cross join session p on p.branch = line.id
    cross join session s on s.scope = :owner and s.parent = p.id and s.opening = 1 and s.cause <> 'fork'
)
select line.first from line cross join branch b on b.id = line.id
group by line.first
having max(coalesce((select e.at from event e where e.branch = b.id order by e.seq desc limit 1), b.at)) < :before;

-- name: tombstones
select t.id, p.at, p.reason from tombstone t join purge p on p.id = t.purge
where t.scope = (select id from scope where name = :scope) and t.id >= :short and t.id < :short || 'g'
order by t.id
limit 2;

-- name: purged_among
select j.value, p.at, p.reason
from json_each(:ids) j
cross join node n on n.scope = (select id from scope where name = :scope) and n.id = from_hex(j.value)
cross join body b on b.scope = n.scope and b.content = n.content and b.purged is not null
cross join tombstone t on t.scope = n.scope and t.id = j.value
cross join purge p on p.id = t.purge;

-- name: add_purge
insert into purge (scope, at, asked, reason, branches, events, nodes, bodies, frames, bytes)
values (:owner, :at, :asked, :reason, 0, 0, 0, 0, 0, 0);

-- name: count_purge
update purge
set branches = :branches, events = :events, nodes = :nodes, bodies = :bodies, frames = :frames, bytes = :bytes
where id = :purge;

-- name: purges
select p.at, s.name, p.asked, p.reason, p.branches, p.events, p.nodes, p.bodies, p.frames, p.bytes, p.wiped
from purge p join scope s on s.id = p.scope
order by p.id desc;

-- name: make_going
create temp table going (id text primary key, heir text, until integer);

-- name: add_going
insert into going (id, heir, until) values (:id, :heir, :until);

-- name: another_branch
select 1 from branch where scope = :owner and not exists (select 1 from going g where g.id = branch.id) limit 1;

-- name: going_events
select g.heir, e.seq <= g.until, e.kind, e.new, e.note from going g cross join event e on e.branch = g.id;

-- name: add_loose
-- With all that is asked of them later: each look at the log itself may be one at the disk.
insert into loose (id, content, branch)
select n.id, n.content, n.branch from json_each(:ids) j
cross join node n on n.scope = :owner and n.id = from_hex(j.value)
where true
on conflict do nothing;

-- name: add_kept
insert into kept (id, branch) select from_hex(j.value), :branch from json_each(:ids) j where true on conflict do nothing;

-- name: keep_first_said
insert into kept (id, branch)
select l.id, l.branch from loose l
where not exists (select 1 from going g where g.id = l.branch)
on conflict do nothing;

-- name: keep_said_again
insert into kept (id, branch)
select l.id, a.branch from loose l cross join said_again a on a.scope = :owner and a.id = l.id
where not exists (select 1 from going g where g.id = a.branch)
on conflict do nothing;

-- name: drop_kept_loose
delete from loose where id in (select id from kept);

-- name: add_spare
insert into spare (content) select distinct content from loose;

-- name: loose_ids
select lower(hex(id)) from loose;

-- name: kept_ids
select lower(hex(k.id)) from kept k cross join node n on n.scope = :owner and n.id = k.id;

-- name: said_on
select e.new from json_each(:branches) j cross join event e on e.branch = j.value where e.kind in ('said', 'client');

-- name: drop_going
drop table going;

-- name: drop_loose
drop table loose;

-- name: drop_spare
drop table spare;

-- name: drop_kept
drop table kept;

-- name: bury_handles
insert into tombstone (scope, id, purge)
select distinct h.scope, lower(hex(h.id)), :purge from handle h
where h.branch in (select id from going) and not exists (
    select 1 from handle o
    where o.scope = :owner and o.id = h.id and not exists (select 1 from going g where g.id = o.branch))
on conflict (scope, id) do update set purge = excluded.purge;

-- name: bury_branches
insert into tombstone (scope, id, purge) select :owner, id, :purge from going where true
on conflict (scope, id) do update set purge = excluded.purge;

-- name: bury_nodes
insert into tombstone (scope, id, purge)
select :owner, lower(hex(id)), :purge from loose where true
on conflict (scope, id) do update set purge = excluded.purge;

-- name: unbury
delete from tombstone where scope = :owner and purge = :purge and id in (select lower(hex(id)) from kept);

-- name: bequeath_events
update event set branch = (select heir from going where id = event.branch)
where branch in (select id from going) and seq <= (select until from going where id = event.branch);

-- name: bequeath_handles
update handle set branch = (select heir from going where id = handle.branch)
where branch in (select id from going) and seq <= (select until from going where id = handle.branch);

-- name: bequeath_heads
insert into head (scope, chain, branch, seq)
select h.scope, h.chain, g.heir, h.seq from head h join going g on g.id = h.branch
where h.seq <= g.until
on conflict do nothing;

-- name: bequeath_nodes
update node set branch = (select min(k.branch) from kept k where k.id = node.id)
where scope = :owner and id in (select id from kept) and branch in (select id from going);

-- name: bequeath_said_again
insert into said_again (scope, id, branch)
select :owner, k.id, k.branch from kept k cross join node n on n.scope = :owner and n.id = k.id and n.branch <> k.branch
where true
on conflict do nothing;

-- name: purge_said_again
delete from said_again
where scope = :owner and branch in (select id from going) and id in (select id from loose union select id from kept);

-- name: purge_events
delete from event where branch in (select id from going);

-- name: purge_checkpoints
delete from checkpoint where branch in (select id from going);

-- name: purge_handles
delete from handle where branch in (select id from going);

-- name: purge_heads
delete from head where branch in (select id from going);

-- name: bequeath_sessions
update session set branch = (select heir from going where id = session.branch)
where branch in (select id from going) and seq <= (select until from going where id = session.branch);

-- name: rename_session
update session set id = :to where id = :session;

-- name: rename_parent
update session set parent = :to where scope = :owner and parent = :session;

-- name: purge_sessions
delete from session where branch in (select id from going);

-- name: orphan_sessions
update session set parent = null, parent_seq = null
where scope = :owner and parent in (select s.id from session s where s.branch in (select id from going));

-- name: purge_branches
delete from branch where id in (select id from going);

-- name: move_branch
update branch set parent = :parent, parent_seq = :parent_seq, cause = :cause where id = :branch;

-- name: holders
-- Where something was said first, where it was said again, and what forked from there.
with recursive held (id) as (
    select n.branch from json_each(:ids) j cross join node n on n.scope = :owner and n.id = from_hex(j.value)
    union
    select a.branch from json_each(:ids) j cross join said_again a on a.scope = :owner and a.id = from_hex(j.value)
    union
    select b.id from held cross join branch b on b.parent = held.id
)
select id from held;

-- name: followers
-- These branches, and those that began with a summary of one of them.
with recursive line (id) as (
    select b.id from json_each(:branches) j cross join branch b on b.id = j.value
    union
    select s.branch from line
    cross join session p on p.branch = line.id
    cross join session s on s.scope = :owner and s.parent = p.id and s.opening = 1
)
select id from line;

-- name: branches_of
-- The same for each of these ids; a fork may have left before it was said.
with recursive held (id, branch) as (
    select n.id, n.branch from json_each(:ids) j
    cross join node n on n.scope = (select id from scope where name = :scope) and n.id = from_hex(j.value)
    union
    select a.id, a.branch from json_each(:ids) j
    cross join said_again a on a.scope = (select id from scope where name = :scope) and a.id = from_hex(j.value)
    union
    select held.id, b.id from held cross join branch b on b.parent = held.branch
)
select lower(hex(id)), branch from held;

-- name: purge_nodes
delete from node where scope = :owner and id in (select id from loose);

-- name: going_frames
select distinct lower(hex(u.digest)) from going g cross join frame_use u on u.branch = g.id;

-- name: purge_frame_use
delete from frame_use where branch in (select id from going);

-- name: parts_of_frames
select distinct lower(hex(substr(f.data, 2, 16))) from json_each(:digests) j
cross join frame f on f.scope = :owner and f.digest = from_hex(j.value) and substr(f.data, 1, 1) = from_hex('03');

-- name: purge_frames
delete from frame
where scope = :owner and digest in (select from_hex(j.value) from json_each(:digests) j)
  and not exists (select 1 from frame_use u where u.scope = :owner and u.digest = frame.digest);

-- name: purge_frame_parts
delete from frame
where scope = :owner and digest in (select from_hex(j.value) from json_each(:digests) j)
  and not exists (
    select 1 from frame f
    where f.scope = :owner and substr(f.data, 2, 16) = frame.digest and substr(f.data, 1, 1) = from_hex('03'));

-- name: frames_size
select coalesce(sum(length(f.data)), 0) from json_each(:digests) j
cross join frame f on f.scope = :owner and f.digest = from_hex(j.value);

-- name: loose_bodies
select b.id, length(b.data) from body b
where not exists (select 1 from node n where n.scope = b.scope and n.content = b.content);

-- name: spare_bodies
select b.id, length(b.data) from spare s
cross join body b on b.scope = :owner and b.content = s.content
where not exists (select 1 from node n indexed by node_content where n.scope = :owner and n.content = s.content);

-- name: purge_bodies
delete from body where id in (select cast(j.value as bigint) from json_each(:bodies) j);

-- name: edits
select e.branch, e.seq, e.old, e.new, e.note from json_each(:branches) j cross join event e on e.branch = j.value
where e.kind = 'edit'
order by e.seq;

-- name: chapters
select e.branch, e.seq from json_each(:branches) j cross join event e on e.branch = j.value
where e.kind = 'chapter';

-- name: client_edits
select e.note from json_each(:branches) j cross join event e on e.branch = j.value
where e.kind = 'client' and e.note is not null;

-- name: places
select lower(hex(n.id)), n.opens from node n indexed by node_content
where n.scope = :owner and n.content = from_hex(:content);

-- name: body
select b.id, b.kind, b.role, b.packed, b.data, b.purged from body b
where b.scope = :owner and b.content = from_hex(:content);

-- name: body_by_number
select kind, role, packed, data, purged from body where id = :body;

-- name: blank_body
update body set kind = :kind, packed = :packed, size = :size, data = :data, purged = :at where id = :body;

-- name: blank_note
update event set note = :note where branch = :branch and seq = :seq;

-- name: blank_opening
update node set opens = :opens where scope = :owner and id = from_hex(:id);

-- name: bury
insert into tombstone (scope, id, purge) values (:owner, :id, :purge)
on conflict (scope, id) do update set purge = excluded.purge;

-- name: wiped
update purge set wiped = 1 where wiped <> 1;

-- name: left_to_vacuum
update purge set wiped = 2 where wiped = 0;

-- --- survey: how much there is, and where ---------------------------------------------------------------------------

-- name: survey_bodies
select count(*), coalesce(sum(size), 0), coalesce(sum(length(data)), 0) from body;

-- name: survey_shared
select cast(sum(n.places) as bigint), count(*), cast(sum((n.places - 1) * length(b.data)) as bigint)
from body b
join (select scope, content, count(*) as places from node group by scope, content) n
     on n.scope = b.scope and n.content = b.content
where (b.kind in ('m', 'media')) = :media;

-- name: survey_frames
select count(case when substr(data, 1, 1) <> from_hex('04') then 1 end), coalesce(sum(length(data)), 0) from frame;

-- name: survey_scopes
select s.name,
       (select count(*) from branch b where b.scope = s.id),
       (select count(distinct b.session) from branch b where b.scope = s.id),
       (select count(*) from branch b join event e on e.branch = b.id where b.scope = s.id and e.kind = 'call'),
       (select count(*) from node n where n.scope = s.id),
       (select count(*) from body b where b.scope = s.id),
       (select coalesce(sum(length(b.data)), 0) from body b where b.scope = s.id)
from scope s
order by s.name;

-- name: survey_declined
select s.name, l.name, l.value from learned l join scope s on s.id = l.scope
where l.kind = 'declined'
order by s.name, l.name;

-- name: forget_declined
delete from learned where kind = 'declined';

-- --- checks: each counts what should not be there ---------------------------------------------------------------------

-- name: check_frame_parts
select count(*) from frame f
where substr(f.data, 1, 1) = from_hex('03')
  and not exists (select 1 from frame p where p.scope = f.scope and p.digest = substr(f.data, 2, 16));

-- name: check_events
select count(*) from event e where not exists (select 1 from branch b where b.id = e.branch);

-- name: check_forks
select count(*) from branch c
where c.parent is not null and not exists (select 1 from branch b where b.id = c.parent and b.scope = c.scope);

-- name: check_nodes
select count(*) from node n
where not exists (select 1 from body b where b.scope = n.scope and b.content = n.content);

-- name: check_handles
select count(*) from handle h where not exists (select 1 from event e where e.branch = h.branch and e.seq = h.seq);

-- name: check_heads
select count(*) from head h where not exists (select 1 from branch b where b.id = h.branch and b.scope = h.scope);

-- name: check_bodies
select count(*) from body b
where not exists (select 1 from node n where n.scope = b.scope and n.content = b.content);

-- name: check_wiped
select count(*) from purge where wiped = 0;

-- name: check_sessions
select count(*) from session s where not exists (select 1 from branch b where b.id = s.branch and b.scope = s.scope);

-- name: check_firsts
select count(*) from branch b where not exists (
    select 1 from session s where s.branch = b.id and s.opening = 1 and s.seq <= coalesce(b.parent_seq + 1, 0));

-- name: check_began
select count(*) from event e
where e.kind = 'session'
  and not exists (select 1 from session s where s.branch = e.branch and s.seq = e.seq and s.opening = 0);

-- name: check_listed
select count(*) from session s
where s.cause = 'compaction' and s.opening = 0
  and exists (select 1 from branch b where b.id = s.branch)
  and not exists (select 1 from event e where e.branch = s.branch and e.seq = s.seq and e.kind = 'session');

-- name: check_parents
select count(*) from session s
where s.parent is not null and not exists (select 1 from session p where p.id = s.parent and p.scope = s.scope);

-- name: check_checkpoints
select count(*) from checkpoint c where not exists (select 1 from branch b where b.id = c.branch);

-- name: checkpoint
select branch, seq, data from checkpoint where branch = :branch and version = :version;

-- name: some_checkpoints
select s.name, b.id, b.session from checkpoint c join branch b on b.id = c.branch join scope s on s.id = b.scope
order by random()
limit :limit;

-- name: event_kinds
select kind, count(*) from event group by kind order by kind;

-- name: some_events
select branch, seq, kind, old, new, note from event
where (branch, seq) in (select branch, seq from event order by random() limit :limit);

-- name: drop_checkpoints
delete from checkpoint;

-- name: newest_events
select n.id, s.name, n.newest
from (select b.id, b.scope, (select max(e.seq) from event e where e.branch = b.id) as newest from branch b) n
join scope s on s.id = n.scope
where n.newest is not null
order by n.newest, n.id;

-- name: body_numbers
select id from body where purged is null;

-- name: some_body_numbers
select id from body where purged is null order by random() limit :limit;


-- --- sessions: stretches of branches --------------------------------------------------------------------------------

-- name: session_at
with recursive line (id, until) as (
    select id, cast(:until as bigint) from branch where id = :branch
    union all
    select b.parent, case when b.parent_seq < line.until then b.parent_seq else line.until end
    from line join branch b on b.id = line.id
    where b.parent is not null
)
select s.id, s.seq from line join session s on s.branch = line.id and s.seq <= line.until
order by s.seq desc, s.opening
limit 1;

-- name: opening_at
select id from session where branch = :branch and seq = :seq and opening = 1;

-- name: session_end
select s.branch, min(o.seq), coalesce((select max(e.seq) from event e where e.branch = s.branch), min(o.seq) - 1)
from session s join session o on o.branch = s.branch
where s.id = :session and s.scope = :owner
group by s.branch;

-- name: add_session
insert into session (id, scope, branch, seq, opening, parent, parent_seq, cause, method, at)
values (:session, :owner, :branch, :seq, :opening, :parent, :parent_seq, :cause, :method,
        case when :opening = 1 then (select at from branch where id = :branch) else :at end);

-- name: end_session
update session set ended = :at, ended_by = :cause where id = :session;

-- name: undo_session
update session set undone = :at where id = :session and scope = :owner and branch = :branch;

-- name: add_totals
update session
set model = coalesce(nullif(:model, ''), model),
    items = items + :items, calls = calls + :calls, sent = sent + :sent, input = input + :input,
    output = output + :output, cached = cached + :cached, cost = cost + :cost
where id = :session;

-- name: sessions
select s.id, s.branch, s.seq,
       (select count(*) from session o
        where o.branch = s.branch and (o.seq < s.seq or (o.seq = s.seq and o.opening >= s.opening))),
       b.session, s.parent, s.parent_seq, s.cause, s.method, s.at, s.ended, s.ended_by, s.undone, s.model, s.items, s.calls,
       s.sent, s.input, s.output, s.cached, s.cost, b.tags, b.archived
from session s join branch b on b.id = s.branch
where s.scope = (select id from scope where name = :scope) and (cast(:branch as text) is null or s.branch = :branch)
order by s.at desc, s.seq desc, s.opening;

-- name: state
select (select coalesce(max(p.id), 0) from purge p where p.scope = (select id from scope where name = :scope)),
       count(*), coalesce(sum(s.items), 0), coalesce(sum(s.calls), 0), coalesce(sum(s.input + s.output), 0),
       coalesce(sum(s.cost), 0), coalesce(max(s.at), 0), coalesce(max(s.undone), 0), count(s.undone),
       coalesce(max(b.archived), 0), count(b.archived), coalesce(sum(length(b.tags)), 0), count(distinct b.tags),
       coalesce((select max(e.seq) from event e where e.branch = cast(:branch as text)), 0) -- a pin changes no sum
from session s join branch b on b.id = s.branch
where s.scope = (select id from scope where name = :scope) and (cast(:branch as text) is null or s.branch = :branch);

-- name: tag_branch
update branch set tags = :tags where id = :branch and scope = :owner;

-- name: archive_branch
update branch set archived = :archived where id = :branch and scope = :owner;

-- name: ancestry
with recursive line (branch, until, apart) as (
    select id, -1, 0 from branch where id = :branch and scope = (select id from scope where name = :scope)
    union all
    select p.branch, first.parent_seq, case when b.parent is null then 1 else 0 end
    from line
    join branch b on b.id = line.branch
    join session first on first.branch = line.branch and first.opening = 1
        and first.seq = (select min(s.seq) from session s where s.branch = line.branch)
    join session p on p.id = first.parent
    where first.cause <> 'beside'
)
select branch, until from line where apart = 1;

-- --- listing sessions again that were lost: the log says where they began -------------------------------------------

-- name: lost_firsts
select b.scope, b.id, coalesce(b.parent_seq + 1, 0), null, b.at, b.cause, b.parent, b.parent_seq from branch b
where not exists (
    select 1 from session s where s.branch = b.id and s.opening = 1 and s.seq <= coalesce(b.parent_seq + 1, 0))
order by b.at;

-- name: lost_sessions
select b.scope, e.branch, e.seq, e.note, e.at, null, e.branch, e.seq - 1 from event e join branch b on b.id = e.branch
where e.kind = 'session'
  and not exists (select 1 from session s where s.branch = e.branch and s.seq = e.seq and s.opening = 0)
order by e.at, e.seq;

-- name: link_session
update session set parent = :parent, parent_seq = :parent_seq where id = :session;

-- name: next_session
select seq, at, cause from session
where branch = :branch and (seq > :seq or (seq = :seq and opening < :opening))
order by seq, opening desc
limit 1;

-- name: session_events
select seq, kind, start, new, note, at from event where branch = :branch and seq >= :since order by seq;

-- name: drop_loose_sessions
delete from session where not exists (select 1 from branch b where b.id = session.branch and b.scope = session.scope);

-- name: drop_loose_parents
update session set parent = null, parent_seq = null
where parent is not null and not exists (select 1 from session p where p.id = session.parent and p.scope = session.scope);

-- name: all_events
select branch, seq, kind, old, new, note from event where (branch, seq) > (:branch, :seq) order by branch, seq limit :limit;

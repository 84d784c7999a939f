-- Every question and every write, by name. `:scope` is a tenant's name, `:owner` its number.
-- `cross join` after json_each: the list given leads, the index follows; left free, the planner may scan the table.

-- name: secret
select value from meta where key = 'secret';

-- name: find
select lower(hex(h.chain)), h.branch, h.seq
from json_each(:chains) j
cross join head h on h.scope = (select id from scope where name = :scope) and h.chain = from_hex(j.value)
cross join branch b on b.id = h.branch and b.session is null;

-- name: alike
select n.branch, count(distinct n.content) as hits
from json_each(:contents) j
cross join node n on n.scope = (select id from scope where name = :scope) and n.content = from_hex(j.value)
cross join branch b on b.id = n.branch and b.session is null
group by n.branch
order by hits desc, n.branch
limit 1;

-- name: session
select id from branch
where scope = (select id from scope where name = :scope) and session = :session
order by at desc
limit 1;

-- name: branch
select session from branch
where id = :branch and scope = (select id from scope where name = :scope);

-- name: newest_event
select max(seq) from event where branch = :branch;

-- name: events
with recursive line (id, until) as (
    select id, :until from branch where id = :branch and scope = (select id from scope where name = :scope)
    union all
    select b.parent, min(b.parent_seq, line.until)
    from line join branch b on b.id = line.id
    where b.parent is not null
)
select e.branch, e.seq, e.at, e.kind, e.start, e.stop, e.old, e.new, e.note
from line join event e on e.branch = line.id and e.seq <= line.until
order by e.seq;

-- name: nodes
select lower(hex(n.id)), lower(hex(n.content)), n.opens, b.kind, b.role, b.packed, b.data
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

-- name: search
select lower(hex(b.content))
from body_text t join body b on b.id = t.rowid
where body_text match :words and b.scope = (select id from scope where name = :scope)
  and b.content in (select from_hex(value) from json_each(:among))
order by bm25(body_text)
limit :limit;

-- name: branches
select b.id, b.session, b.parent, b.cause, b.at,
       (select count(*) from event e where e.branch = b.id and e.kind = 'call')
from branch b
where b.scope = (select id from scope where name = :scope)
order by b.at desc;

-- name: add_scope
insert or ignore into scope (name) values (:scope);

-- name: scope
select id from scope where name = :scope;

-- name: add_branch
insert into branch (id, scope, session, parent, parent_seq, cause, at)
values (:branch, :owner, :session, :parent, :parent_seq, :cause, :at);

-- name: add_event
insert into event (branch, seq, kind, start, stop, old, new, note, at)
values (:branch, :seq, :kind, :start, :stop, :old, :new, :note, :at);

-- name: add_node
insert or ignore into node (scope, id, content, branch, opens)
values (:owner, from_hex(:id), from_hex(:content), :branch, :opens);

-- name: has_body
select 1 from body where scope = :owner and content = from_hex(:content);

-- name: add_body
insert into body (scope, content, kind, role, packed, size, data)
values (:owner, from_hex(:content), :kind, :role, :packed, :size, :data);

-- name: add_text
insert into body_text (rowid, text) values (:body, :text);

-- name: add_handle
insert or ignore into handle (scope, id, branch, seq) values (:owner, from_hex(:id), :branch, :seq);

-- name: add_head
insert or ignore into head (scope, chain, branch, seq) values (:owner, from_hex(:chain), :branch, :seq);

-- name: add_frame
insert or ignore into frame (scope, digest, data) values (:owner, from_hex(:digest), :data);

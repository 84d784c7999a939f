-- What SQLite says in its own way.

-- name: search
-- By number first: reading every body in the store that has a common word takes longer than looking for the word.
-- Between the first and the last number: a session's bodies stand near each other, and all others need not be looked at.
with own as materialized (
    select b.id from json_each(:among) j
    cross join body b on b.scope = (select id from scope where name = :scope) and b.content = from_hex(j.value))
select (select lower(hex(b.content)) from body b where b.id = t.rowid)
from body_text t
where body_text match :words
  and t.rowid between (select min(id) from own) and (select max(id) from own)
  and +t.rowid in (select id from own)
order by bm25(body_text)
limit :limit;

-- name: search_all
select lower(hex(b.content))
from body_text t join body b on b.id = t.rowid
where body_text match :words and t.rowid > :after and b.scope = (select id from scope where name = :scope)
order by bm25(body_text)
limit :limit;

-- name: count_some
select count(*) from (select 1 from body_text where body_text match :words limit :most);

-- name: count_some_of
select count(*) from (
    select 1 from body_text t join body b on b.id = t.rowid
    where body_text match :words and b.scope = (select id from scope where name = :scope)
    limit :most);

-- name: count_scopes
select count(*) from (select 1 from scope limit 2);

-- name: last_body
select coalesce(max(id), 0) from body;

-- name: places_of
-- By name: without statistics the planner takes the primary key, and reads every node of the scope for each content.
select lower(hex(n.id)), n.branch
from json_each(:contents) j
cross join node n indexed by node_content
  on n.scope = (select id from scope where name = :scope) and n.content = from_hex(j.value);

-- name: hold_branch
select id from branch where id = :branch and scope = (select id from scope where name = :scope);

-- name: turns
select coalesce((select value from meta where key = 'turns'), 0);

-- name: count_turns
insert into meta (key, value) values ('turns', :more) on conflict (key) do update set value = value + excluded.value
returning value;

-- name: lose_turns
insert into meta (key, value) values ('lost', :more), ('turns', :more)
on conflict (key) do update set value = value + excluded.value;

-- name: check_lost
select coalesce((select value from meta where key = 'lost'), 0);

-- name: forget_lost
delete from meta where key = 'lost';

-- name: begin_write
select id from scope where name = :scope;

-- name: begin_purge
pragma secure_delete = on;

-- name: begin_repair
select 1;

-- name: add_text
insert into body_text (rowid, text) values (:body, :text);

-- name: add_text_of
-- Not from a select: SQLite would write the index anew after every row.
insert into body_text (rowid, text) values ((select id from body where scope = :owner and content = from_hex(:content)), :text);

-- name: holding
select lower(hex(b.content)), b.kind, b.role, b.packed, b.data from body_text t join body b on b.id = t.rowid
where body_text match :words and b.scope = :owner;

-- name: is_found
select 1 from body_text where body_text match :word and rowid = :body;

-- name: make_kept
create temp table kept (id blob, branch text, primary key (id, branch)) without rowid;

-- name: make_loose
create temp table loose (id blob primary key, content blob not null, branch text not null) without rowid;

-- name: make_spare
create temp table spare (content blob primary key) without rowid;

-- name: purge_text
insert into body_text (body_text, rowid, text) values ('delete', :body, :text);

-- name: merge_index
insert into body_text (body_text) values ('optimize');

-- name: count_lists
select 1;

-- name: survey_pages
select sum(case when name = 'body' then pgsize end), sum(case when name like 'body_text%' then pgsize end)
from dbstat where aggregate = 1;

-- name: survey_index
select coalesce(sum(length(block)), 0) from body_text_data;

-- name: check_frames
select count(*) from event e join branch b on b.id = e.branch
where e.kind = 'call'
  and not exists (
    select 1 from frame f where f.scope = b.scope and f.digest = case
        when typeof(e.note) = 'blob' and substr(e.note, 1, 1) = x'01' then substr(e.note, 2, 16)
        else from_hex(json_extract(cast(e.note as text), '$.frame')) end);

-- name: check_index
insert into body_text (body_text) values ('integrity-check');

-- name: check_indexed
select count(*) from body_text_docsize t
where not exists (select 1 from body b where b.id = t.id and b.purged is null);

-- name: body_whole
select s.name, lower(hex(b.content)),
       (select n.opens from node n indexed by node_content where n.scope = b.scope and n.content = b.content limit 1),
       b.kind, b.role, b.packed, b.data,
       exists (select 1 from body_text_docsize t where t.id = b.id)
from body b join scope s on s.id = b.scope
where b.id = :body;

-- name: empty_index
insert into body_text (body_text) values ('delete-all');

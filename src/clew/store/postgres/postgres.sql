-- What PostgreSQL says in its own way.

-- name: search
select hex(h.content), h.size,
       array(select a.n from unnest(cast(:words as tsquery[])) with ordinality a (word, n) where h.words @@ a.word)
from (
    select b.content, b.size, strip(t.words) as words  -- read once, however many words are then looked for in it
    from json_each(:among) j
    join body b on b.scope = (select id from scope where name = :scope) and b.content = from_hex(j.value)
    join body_text t on t.body = b.id and t.words @@ cast(:any as tsquery)
    offset 0
) h;

-- name: search_all
select hex(h.content), h.size, array[a.n]
from (select quote_literal('#' || id)::tsquery as ours from scope where name = :scope) s
join unnest(cast(:words as tsquery[])) with ordinality a (word, n) on true
join lateral (
    select b.content, b.size from body_text t join body b on b.id = t.body
    where t.words @@ (a.word && s.ours)
    limit :most
) h on true;

-- name: places_of
select lower(hex(n.id)), n.branch
from json_each(:contents) j
join node n on n.scope = (select id from scope where name = :scope) and n.content = from_hex(j.value);

-- name: hold_branch
select id from branch where id = :branch and scope = (select id from scope where name = :scope) for update;

-- name: try_alone
select pg_try_advisory_lock('session'::regclass::oid::int, hashtext(:branch));

-- name: wait_alone
select pg_advisory_lock('session'::regclass::oid::int, hashtext(:branch));

-- name: end_alone
select pg_advisory_unlock('session'::regclass::oid::int, hashtext(:branch));

-- name: hold_version
select pg_advisory_xact_lock_shared(:application, hashtext(current_schema()));

-- name: version
select value from meta where key = 'version';

-- name: check_lost
select 0;  -- the server looks after its log itself

-- name: forget_lost
select 1;

-- name: begin_write
select id, pg_advisory_xact_lock_shared('scope'::regclass::oid::int, id) from scope where name = :scope;

-- name: begin_purge
select pg_advisory_xact_lock('scope'::regclass::oid::int, :owner);

-- name: begin_repair
lock table node, body in share row exclusive mode;

-- name: add_text
insert into body_text (body, part, words)
select id, :part, array_to_tsvector(cast(:words as text[]) || ('#' || scope)) from body where id = :body
on conflict do nothing;

-- name: add_text_of
insert into body_text (body, part, words)
select id, :part, array_to_tsvector(cast(:words as text[]) || ('#' || scope))
from body where scope = :owner and content = from_hex(:content)
on conflict do nothing;

-- name: holding
select lower(hex(b.content)), b.kind, b.role, b.packed, b.data from body_text t join body b on b.id = t.body
where t.words @@ cast(:words as tsquery) and b.scope = :owner;

-- name: is_found
select 1 from body_text where body = :body and words @@ cast(:word as tsquery) limit 1;

-- name: purge_texts
delete from body_text where body in (select cast(j.value as bigint) from json_each(:bodies) j);

-- name: empty_index
delete from body_text;

-- name: merge_index
select 1;

-- name: make_kept
create temp table kept (id bytea, branch text, primary key (id, branch));

-- name: make_loose
create temp table loose (id bytea primary key, content bytea not null, branch text not null);

-- name: make_spare
create temp table spare (content bytea primary key);

-- name: count_lists
-- They are new: the planner would take them for long, and read whole tables instead of looking into these.
analyze going, kept, loose, spare;

-- name: survey_pages
select cast(sum(pg_total_relation_size(c.oid)) as bigint),
       pg_total_relation_size('body'), pg_total_relation_size('body_text')
from pg_class c
where c.relnamespace = (select relnamespace from pg_class where oid = 'body'::regclass) and c.relkind = 'r';

-- name: check_frames
select count(*) from event e join branch b on b.id = e.branch
where e.kind = 'call'
  and not exists (
    select 1 from frame f
    where f.scope = b.scope and f.digest = case when get_byte(e.note, 0) = 1 then substring(e.note from 2 for 16)
        else from_hex(substring(convert_from(e.note, 'UTF8') from '"frame":"([0-9a-f]*)"')) end);

-- name: check_index
select 1;

-- name: check_indexed
select count(distinct t.body) from body_text t
where not exists (select 1 from body b where b.id = t.body and b.purged is null);

-- name: body_whole
select s.name, hex(b.content),
       (select n.opens from node n where n.scope = b.scope and n.content = b.content limit 1),
       b.kind, b.role, b.packed, b.data,
       exists (select 1 from body_text t where t.body = b.id)
from body b join scope s on s.id = b.scope
where b.id = :body;

-- name: size
select cast(sum(pg_total_relation_size(c.oid)) as bigint) from pg_class c
where c.relnamespace = (select relnamespace from pg_class where oid = 'body'::regclass) and c.relkind = 'r';

-- name: wipe
vacuum (full, verbose) body, body_text, node, frame, event, handle, head, branch, session, checkpoint, said_again, frame_use;

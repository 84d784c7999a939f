-- Who else needs a node or a frame, so that a purge of some branches need not read the events of all others.
-- A node names the branch on which it was first said; these are the others on which it was said, too.
create table said_again (
    scope  integer not null references scope,
    id     blob not null,
    branch text not null,
    primary key (scope, id, branch)
) without rowid;

-- The branches of whose calls a frame was a part.
create table frame_use (
    scope  integer not null references scope,
    digest blob not null,
    branch text not null,
    primary key (scope, digest, branch)
) without rowid;

create index branch_parent on branch (parent);
create index frame_use_branch on frame_use (branch);
create index branch_at on branch (scope, at);  -- those that were opened before a date
create index frame_parts on frame (scope, substr(data, 2, 16));

insert into said_again (scope, id, branch)
select distinct n.scope, n.id, e.branch
from event e
join branch b on b.id = e.branch
cross join json_each(hex_list(e.new)) j
cross join node n on n.scope = b.scope and n.id = from_hex(j.value) and n.branch <> e.branch
where e.new is not null;

insert into frame_use (scope, digest, branch)
select distinct b.scope,
       case when typeof(e.note) = 'blob' and substr(e.note, 1, 1) = x'01' then substr(e.note, 2, 16)
            else from_hex(json_extract(cast(e.note as text), '$.frame')) end,
       b.id
from branch b join event e on e.branch = b.id
where e.kind = 'call';

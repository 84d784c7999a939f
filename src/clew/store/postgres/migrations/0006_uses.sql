-- The same as `migrations/0006_uses.sql` of SQLite, which explains it.
create table said_again (
    scope  integer not null,
    id     bytea not null,
    branch text collate "C" not null,
    primary key (scope, id, branch)
);

create table frame_use (
    scope  integer not null,
    digest bytea not null,
    branch text collate "C" not null,
    primary key (scope, digest, branch)
);

create index branch_parent on branch (parent) where parent is not null;
create index frame_use_branch on frame_use (branch);
create index branch_at on branch (scope, at);
create index frame_parts on frame (scope, substr(data, 2, 16));
-- What belongs to a branch is found without reading what belongs to others. SQLite does without: it writes the whole file
-- anew after a purge.
create index head_branch on head (branch);
create index handle_branch on handle (branch);

insert into said_again (scope, id, branch)
select distinct n.scope, n.id, e.branch
from event e
join branch b on b.id = e.branch
join lateral generate_series(0, length(e.new) / 16 - 1) i on true
join node n on n.scope = b.scope and n.id = substring(e.new from 16 * i + 1 for 16) and n.branch <> e.branch
where e.new is not null;

insert into frame_use (scope, digest, branch)
select distinct b.scope,
       case when get_byte(e.note, 0) = 1 then substring(e.note from 2 for 16)
            else from_hex(substring(convert_from(e.note, 'UTF8') from '"frame":"([0-9a-f]*)"')) end,
       b.id
from branch b join event e on e.branch = b.id
where e.kind = 'call';

-- A purge leaves dead rows. By default the server waits until a fifth of a table is dead before it uses their room again.
alter table body set (autovacuum_vacuum_scale_factor = 0.02);
alter table body_text set (autovacuum_vacuum_scale_factor = 0.02);
alter table node set (autovacuum_vacuum_scale_factor = 0.02);
alter table event set (autovacuum_vacuum_scale_factor = 0.02);
alter table head set (autovacuum_vacuum_scale_factor = 0.02);

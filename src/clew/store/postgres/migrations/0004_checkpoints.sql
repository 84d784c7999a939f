-- The same as `migrations/0005_checkpoints.sql`, which explains it.
create table checkpoint (
    branch  text collate "C" primary key,
    seq     integer not null,
    version integer not null,
    data    bytea not null
);
alter table checkpoint alter column data set storage external;

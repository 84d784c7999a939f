-- A branch as it was before event `seq`, so that loading it replays only what came after: the newest one of each branch. It
-- says nothing that the events do not say, holds digests and no words, and may be dropped at any time.
create table checkpoint (
    branch  text primary key references branch,
    seq     integer not null,
    version integer not null,              -- of how it is packed
    data    blob not null
);

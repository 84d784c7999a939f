-- A store made large inside its server: the rows of one scope again, under other digests, in other scopes or in one.
-- What is copied is no log that could be read; it is in the way of those that are, as the rows of other tenants would be.

-- `copies` has the numbers of copies and the scope of each; `base_…` the rows that are copied.

-- name: prepare
create function other(bytea, integer) returns bytea language sql immutable parallel safe
    as $$ select substring(sha256($1 || int4send($2)) for 16) $$;
create function others(bytea, integer) returns bytea language sql immutable parallel safe
    as $$ select string_agg(other(substring($1 from 16 * i + 1 for 16), $2), '' order by i)
          from generate_series(0, length($1) / 16 - 1) i $$;
create function other_name(text, integer) returns text language sql immutable parallel safe
    as $$ select substring(md5($1 || $2) for 16) $$;

-- name: body
insert into body (id, scope, content, kind, role, packed, size, data) overriding system value
select b.id + c.copy::bigint * :stride, c.scope, other(b.content, c.copy), b.kind, b.role, b.packed, b.size, b.data
from copies c, base_body b where c.copy between :first and :last;

-- name: body_text
-- With one word that nothing else has, as paths, ids and numbers are.
insert into body_text (body, part, words)
select t.body + c.copy::bigint * :stride, t.part,
       ts_delete(t.words, '#' || :base) || array_to_tsvector(array['#' || c.scope, 'own' || c.copy || 'x' || t.body])
from copies c, base_body_text t where c.copy between :first and :last;

-- name: node
insert into node (scope, id, content, branch, opens)
select c.scope, other(n.id, c.copy), other(n.content, c.copy), other_name(n.branch, c.copy), n.opens
from copies c, base_node n where c.copy between :first and :last;

-- name: branch
insert into branch (id, scope, session, parent, parent_seq, cause, at)
select other_name(b.id, c.copy), c.scope, b.session || ' ' || c.copy, null, null, b.cause, b.at
from copies c, base_branch b where c.copy between :first and :last;

-- name: session
insert into session (id, scope, branch, seq, opening, cause, at, items, calls, sent)
select other_name(s.id, c.copy), c.scope, other_name(s.branch, c.copy), s.seq, s.opening, s.cause, s.at,
       s.items, s.calls, s.sent
from copies c, base_session s where c.copy between :first and :last;

-- name: event
insert into event (branch, seq, kind, start, stop, old, new, note, at)
select other_name(e.branch, c.copy), e.seq, e.kind, e.start, e.stop, others(e.old, c.copy), others(e.new, c.copy),
       e.note, e.at
from copies c, base_event e where c.copy between :first and :last;

-- name: checkpoint
insert into checkpoint (branch, seq, version, data)
select other_name(k.branch, c.copy), k.seq, k.version, k.data
from copies c, base_checkpoint k where c.copy between :first and :last;

-- name: head
insert into head (scope, chain, branch, seq)
select c.scope, other(h.chain, c.copy), other_name(h.branch, c.copy), h.seq
from copies c, base_head h where c.copy between :first and :last;

-- name: handle
insert into handle (scope, id, branch, seq)
select c.scope, other(h.id, c.copy), other_name(h.branch, c.copy), h.seq
from copies c, base_handle h where c.copy between :first and :last;

-- name: frame
insert into frame (scope, digest, data)
select distinct c.scope, f.digest, f.data from copies c, base_frame f where c.copy between :first and :last
except select scope, digest, data from frame;

-- name: frame_use
insert into frame_use (scope, digest, branch)
select c.scope, u.digest, other_name(u.branch, c.copy)
from copies c, base_frame_use u where c.copy between :first and :last;

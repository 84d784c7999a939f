-- The two tables that partitions could help, split by tenant: nodes, which every turn looks up, and words, which a search reads.

-- name: node
create table node_parts (like node including storage) partition by hash (scope);
do $$ begin
    for n in 0..15 loop
        execute format('create table node_part_%s partition of node_parts for values with (modulus 16, remainder %s)', n, n);
    end loop;
end $$;
insert into node_parts select * from node;
drop table node;
alter table node_parts rename to node;
alter table node add primary key (scope, id);
create index node_content on node (scope, content);

-- name: body_text
create table text_parts (body bigint not null, part integer not null, words tsvector not null, scope integer not null)
    partition by hash (scope);
do $$ begin
    for n in 0..15 loop
        execute format('create table text_part_%s partition of text_parts for values with (modulus 16, remainder %s)', n, n);
    end loop;
end $$;
insert into text_parts select t.body, t.part, t.words, b.scope from body_text t join body b on b.id = t.body;
drop table body_text;
alter table text_parts rename to body_text;
-- The scope last: found by it alone, half the store would be read beside the index of words.
alter table body_text add primary key (body, part, scope);
create index body_text_words on body_text using gin (words);

-- name: add_text_of
insert into body_text (body, part, words, scope)
select id, :part, array_to_tsvector(cast(:words as text[]) || ('#' || scope)), scope
from body where scope = :owner and content = from_hex(:content)
on conflict do nothing;

-- name: search
select hex(h.content), h.size,
       array(select a.n from unnest(cast(:words as tsquery[])) with ordinality a (word, n) where h.words @@ a.word)
from (
    select b.content, b.size, strip(t.words) as words
    from json_each(:among) j
    join body b on b.scope = (select id from scope where name = :scope) and b.content = from_hex(j.value)
    join body_text t on t.scope = b.scope and t.body = b.id and t.words @@ cast(:any as tsquery)
    offset 0
) h;

-- name: search_all
select hex(h.content), h.size, array[a.n]
from (select id, quote_literal('#' || id)::tsquery as ours from scope where name = :scope) s
join unnest(cast(:words as tsquery[])) with ordinality a (word, n) on true
join lateral (
    select b.content, b.size from body_text t join body b on b.id = t.body
    where t.scope = s.id and t.words @@ (a.word && s.ours)
    limit :most
) h on true;

-- name: purge_texts
delete from body_text where scope = (select scope from body where id = (select min(cast(j.value as bigint)) from json_each(:bodies) j))
    and body in (select cast(j.value as bigint) from json_each(:bodies) j);

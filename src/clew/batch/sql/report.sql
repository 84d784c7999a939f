-- name: compress_largest
-- title: the largest conversations
select id, model, tokens_before as before, tokens_after as after, edits
from records order by before desc, id limit 10

-- name: compress_by_client
-- title: by client and model
select coalesce(nullif(agent, ''), format) as client, model, count(*) as talks,
       sum(tokens_before) as before, sum(tokens_after) as after,
       sum((edits > 0)::int) as shortened, sum((len(broken_rules) > 0)::int) as broken
from records group by all order by before desc, client, model limit 20

-- name: score_lost
-- title: what lost most
select id, tokens_before as before, tokens_after as after, facts_before as facts, facts_kept as kept,
       facts_before - facts_kept as lost
from records order by lost desc, id limit 10

-- name: score_kinds
-- title: by kind of fact
select kind, sum(before) as before, sum(kept) as kept, round(100.0 * sum(kept) / nullif(sum(before), 0), 1) as percent
from (
  select unnest(json_keys(facts)) as kind,
         unnest(json_extract(facts, '$.*.before')::bigint[]) as before,
         unnest(json_extract(facts, '$.*.kept')::bigint[]) as kept
  from records
)
group by kind order by before desc, kind

-- name: score_by_client
-- title: by client and model
select coalesce(nullif(agent, ''), format) as client, model, count(*) as talks,
       sum(tokens_before) as before, sum(tokens_after) as after, sum(facts_before) as facts, sum(facts_kept) as kept
from records group by all order by before desc, client, model limit 20

-- name: audit_lost
-- title: compactions that lost most file paths
select id, (one ->> 'number')::int as nr, one ->> 'model' as model,
       (one ->> 'tokens_before')::bigint as before, (one ->> 'tokens_after')::bigint as after,
       (one ->> '$.facts.paths.before')::bigint as paths, (one ->> '$.facts.paths.kept')::bigint as kept
from (select id, unnest(compactions::json[]) as one from records)
order by paths - kept desc nulls last, id, nr limit 10

-- name: audit_by_client
-- title: by client and model
select coalesce(nullif(agent, ''), 'messages') as client, model, count(*) as talks,
       sum((json_array_length(compactions) > 0)::int) as compacted, sum(json_array_length(compactions)) as times
from records group by all order by times desc, talks desc, client, model limit 20

-- name: search_most
-- title: most hits
select id, hits, found ->> '$[0].role' as who, left(replace(found ->> '$[0].excerpt', chr(10), ' '), 28) as first
from records order by hits desc, id limit 10

-- name: search_by_client
-- title: by client and model
select coalesce(nullif(agent, ''), format) as client, model, count(*) as talks, sum(hits) as hits
from records group by all order by hits desc, client, model limit 20

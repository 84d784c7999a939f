-- name: compress_largest
-- title: the largest conversations
select id, model, tokens_before, tokens_after, edits
from records order by tokens_before desc, id limit 10

-- name: compress_by_client
-- title: by client and model
select coalesce(nullif(agent, ''), format) as client, model, count(*) as conversations,
       sum(tokens_before) as tokens_before, sum(tokens_after) as tokens_after,
       sum((edits > 0)::int) as shortened, sum((len(broken_rules) > 0)::int) as broken
from records group by all order by tokens_before desc, client, model limit 20

-- name: score_lost
-- title: what lost most
select id, tokens_before, tokens_after, facts_before, facts_kept, facts_before - facts_kept as lost
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
select coalesce(nullif(agent, ''), format) as client, model, count(*) as conversations,
       sum(tokens_before) as tokens_before, sum(tokens_after) as tokens_after,
       sum(facts_before) as facts_before, sum(facts_kept) as facts_kept
from records group by all order by tokens_before desc, client, model limit 20

-- name: audit_lost
-- title: compactions that lost most file paths
select id, (one ->> 'number')::int as number, one ->> 'model' as model,
       (one ->> 'tokens_before')::bigint as tokens_before, (one ->> 'tokens_after')::bigint as tokens_after,
       (one ->> '$.facts.paths.before')::bigint as paths, (one ->> '$.facts.paths.kept')::bigint as kept
from (select id, unnest(compactions::json[]) as one from records)
order by paths - kept desc nulls last, id, number limit 10

-- name: audit_by_client
-- title: by client and model
select coalesce(nullif(agent, ''), 'messages') as client, model, count(*) as conversations,
       sum(json_array_length(compactions)) as compactions,
       sum((json_array_length(compactions) > 0)::int) as compacted
from records group by all order by compactions desc, conversations desc, client, model limit 20

-- name: search_most
-- title: most hits
select id, hits, found ->> '$[0].role' as who, left(replace(found ->> '$[0].excerpt', chr(10), ' '), 60) as first
from records order by hits desc, id limit 10

-- name: search_by_client
-- title: by client and model
select coalesce(nullif(agent, ''), format) as client, model, count(*) as conversations, sum(hits) as hits
from records group by all order by hits desc, client, model limit 20

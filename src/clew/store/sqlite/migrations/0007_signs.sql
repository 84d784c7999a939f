-- Signs of languages without spaces are indexed in pairs (`signs.py`). An older clew would leave them in the index when it purges:
-- it is to refuse this store.
select 1;

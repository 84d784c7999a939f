-- Frames may say by whom their model is served (`frames.py`). An older clew cannot read those: it is to refuse this store.
select 1;

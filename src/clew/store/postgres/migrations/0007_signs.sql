-- The same as `migrations/0007_signs.sql` of SQLite, which explains it.
select 1;

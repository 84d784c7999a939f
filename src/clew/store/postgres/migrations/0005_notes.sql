-- Notes of events are bytes: JSON as before, or shorter, as `notes.py` has it. SQLite takes both in one column.
do $$ begin
    if (select format_type(atttypid, null) from pg_attribute where attrelid = 'event'::regclass and attname = 'note') = 'text'
    then
        alter table event alter column note type bytea using convert_to(note, 'UTF8');
    end if;
end $$;

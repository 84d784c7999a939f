-- What the server samples of texts for its planner would stay there when they are purged, and anybody may ask for it who
-- reads the table. No query chooses by what a text says. A type that is set anew, also to the same one, drops what was
-- sampled so far, and how the column is stored.
alter table body_text alter column words type tsvector, alter column words set statistics 0;
alter table body alter column data type bytea, alter column data set storage external, alter column data set statistics 0;
alter table frame alter column data type bytea, alter column data set storage external, alter column data set statistics 0;
alter table checkpoint alter column data type bytea, alter column data set storage external, alter column data set statistics 0;
alter table node alter column opens type text, alter column opens set statistics 0;
alter table event alter column note type bytea, alter column note set statistics 0;

-- `made_with`: the token that has made it, with which it ends; null: that of the data folder. `root`: a mark of that one, with
-- which all end; null: it was made before this was kept.
ALTER TABLE tokens ADD COLUMN made_with INTEGER;
ALTER TABLE tokens ADD COLUMN root TEXT;

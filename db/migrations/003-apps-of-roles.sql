-- The apps of a host for which alone a role is, as a JSON array of names; null: it is for all.
ALTER TABLE tokens ADD COLUMN apps TEXT;
ALTER TABLE sessions ADD COLUMN apps TEXT;

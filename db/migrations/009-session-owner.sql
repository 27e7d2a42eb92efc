-- The user of this machine whose browser has signed in; null: it came from another one.
ALTER TABLE sessions ADD COLUMN owner INTEGER;

-- Tokens with a name. Of a token only the hash is kept. A number is never given out twice: the history names it.
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT;

-- Who has signed in. `name`: null for somebody with the admin token or its link; `token`: ends with that one.
ALTER TABLE sessions ADD COLUMN name TEXT;
ALTER TABLE sessions ADD COLUMN role TEXT NOT NULL DEFAULT 'admin';
ALTER TABLE sessions ADD COLUMN token INTEGER;

-- First answers to requests with an Idempotency-Key. `key` and `request` are hashes; `answer` is JSON.
CREATE TABLE answers (
  key TEXT PRIMARY KEY,
  request TEXT NOT NULL,
  answer TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX answers_by_time ON answers (at_ms);

-- What of this history others have been told: one row, or none before the first time. `source` names these events to them;
-- `since`: those up to there were told under another name; `published`: all up to there are told, and at times some more;
-- `place`: where the newest of these is with the others, null: nowhere yet.
CREATE TABLE outbox (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  source TEXT NOT NULL,
  since INTEGER NOT NULL,
  published INTEGER NOT NULL,
  place INTEGER
) STRICT;

-- Ids come from the event stream and order the history; the rowid is the last part of every index below,
-- so each of them pages one filter newest first without sorting.
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  type TEXT NOT NULL,
  cause TEXT,
  slot INTEGER,
  worker INTEGER,
  pid INTEGER,
  release TEXT,
  rollout INTEGER,
  actor TEXT,
  code INTEGER,
  signal TEXT,
  uptime_ms INTEGER,
  message TEXT,
  detail TEXT
) STRICT;
CREATE INDEX events_by_type ON events (type);
CREATE INDEX events_by_cause ON events (cause) WHERE cause IS NOT NULL;
CREATE INDEX events_by_slot ON events (slot) WHERE slot IS NOT NULL;
CREATE INDEX events_by_worker ON events (worker) WHERE worker IS NOT NULL;
CREATE INDEX events_by_release ON events (release) WHERE release IS NOT NULL;
CREATE INDEX events_by_rollout ON events (rollout) WHERE rollout IS NOT NULL;

-- The times that each run of 1024 ids spans. Wall clocks jump, so ids are not ordered by time;
-- this turns a time range into an id range by reading one small row per 1024 events.
CREATE TABLE spans (
  span INTEGER PRIMARY KEY,
  oldest_ms INTEGER NOT NULL,
  newest_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE rollouts (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
  hash TEXT PRIMARY KEY,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_ms);

-- The highest number ever given out for each kind of thing. Retention deletes rows; ids are still never used twice.
CREATE TABLE high_water (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

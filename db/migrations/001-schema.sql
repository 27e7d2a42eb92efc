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

-- How many events of each type and cause there are in each run of 1024 ids, so that counting a million of them reads a few
-- rows per run. `cause` is empty where an event has none.
CREATE TABLE span_counts (
  span INTEGER NOT NULL,
  type TEXT NOT NULL,
  cause TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (span, type, cause)
) STRICT, WITHOUT ROWID;

-- How many events of each type are kept. The types that an app can publish as often as it likes have a limit of their own
-- (db/retention.ts), so that they displace no other events.
CREATE TABLE event_totals (
  type TEXT PRIMARY KEY,
  count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER event_kept AFTER INSERT ON events BEGIN
  INSERT INTO event_totals (type, count) VALUES (new.type, 1) ON CONFLICT (type) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER event_forgotten AFTER DELETE ON events BEGIN
  UPDATE event_totals SET count = count - 1 WHERE type = old.type;
  UPDATE span_counts SET count = count - 1 WHERE span = old.id / 1024 AND type = old.type AND cause = coalesce(old.cause, '');
  DELETE FROM span_counts WHERE span = old.id / 1024 AND type = old.type AND cause = coalesce(old.cause, '') AND count <= 0;
END;

CREATE TABLE rollouts (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;

-- The highest number ever given out for each kind of thing. Retention deletes rows; ids are still never used twice.
CREATE TABLE high_water (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per kind of crash, which counts every one of them; of the crashes themselves only a few samples are kept.
-- AUTOINCREMENT: events name groups and crashes by id, so none is ever used twice.
CREATE TABLE crash_groups (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  fingerprint TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL,
  kind TEXT NOT NULL,
  cause TEXT NOT NULL,
  error_name TEXT,
  message TEXT,
  culprit TEXT,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  count INTEGER NOT NULL,
  first_release TEXT,
  last_release TEXT,
  last_crash INTEGER NOT NULL,
  state_ms INTEGER,
  state_actor TEXT,
  returned_ms INTEGER
) STRICT;
CREATE INDEX crash_groups_by_last_crash ON crash_groups (last_crash);

CREATE TABLE crash_releases (
  crash_group INTEGER NOT NULL REFERENCES crash_groups (id) ON DELETE CASCADE,
  release TEXT NOT NULL,
  count INTEGER NOT NULL,
  first_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL,
  PRIMARY KEY (crash_group, release)
) STRICT, WITHOUT ROWID;

-- `place` 0 is the first of its group, 1 the newest, the others a few random ones between.
CREATE TABLE crashes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  crash_group INTEGER NOT NULL REFERENCES crash_groups (id) ON DELETE CASCADE,
  place INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  body TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX crashes_by_place ON crashes (crash_group, place);

-- Message and stack of each sample. The rowid is crash_group * 256 + place.
CREATE VIRTUAL TABLE crash_texts USING fts5 (message, stack, tokenize = "unicode61 remove_diacritics 2 tokenchars '_$'");

-- How many crashes a group had in each hour; `hour` is the number of hours since the epoch.
CREATE TABLE crash_hours (
  crash_group INTEGER NOT NULL REFERENCES crash_groups (id) ON DELETE CASCADE,
  hour INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (crash_group, hour)
) STRICT, WITHOUT ROWID;

-- Vitals of the workers, one row per step for the cluster and all its slots together: with steps of a minute, a chart of a
-- day is 1440 rows, not 1440 for each slot. `body` is packed, see server/vitals/codec.ts; `seconds` is how much of the step
-- it covers.
CREATE TABLE vitals (
  step_s INTEGER NOT NULL,
  at_s INTEGER NOT NULL,
  seconds INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (step_s, at_s)
) STRICT, WITHOUT ROWID;

-- The releases that are kept. `body` is what may be shown; `arguments` is what the workers are started with; `marks` has a
-- keyed digest of each variable of their environment, which shows a change of its value without telling the value.
CREATE TABLE releases (
  number INTEGER PRIMARY KEY,
  outcome TEXT,
  deployed_ms INTEGER,
  body TEXT NOT NULL,
  arguments TEXT NOT NULL,
  marks TEXT NOT NULL
) STRICT;

-- Who is signed in. `name`: null for somebody with the admin token or its link; `token`: the token with which the session
-- ends; `owner`: the user of this machine whose browser it is, null where it came from another machine.
CREATE TABLE sessions (
  hash TEXT PRIMARY KEY,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  name TEXT,
  role TEXT NOT NULL,
  token INTEGER,
  owner INTEGER,
  apps TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_expiry ON sessions (expires_ms);

-- Tokens with a name. Of a token only the hash is kept. A number is never given out twice, as events name tokens by it.
-- `made_with`: the token that has made it, with which it ends; null: the admin token. `root`: a hash made of the admin token;
-- where that is replaced, all tokens end. `apps`, as of a session: the only apps of a host for which the role counts, as a
-- JSON array of names; null: it counts for all. `kind`: `link` for whoever was sent a sign-in link, of which nobody has the token;
-- `used_ms`, `used_from`: when and from which address it was used last, as of about a minute ago.
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  made_with INTEGER,
  root TEXT NOT NULL,
  expires_ms INTEGER NOT NULL,
  apps TEXT,
  kind TEXT NOT NULL,
  used_ms INTEGER,
  used_from TEXT
) STRICT;

-- First answers to requests with an Idempotency-Key. `key` and `request` are hashes; `answer` is JSON.
CREATE TABLE answers (
  key TEXT PRIMARY KEY,
  request TEXT NOT NULL,
  answer TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX answers_by_time ON answers (at_ms);

-- How far the events are published to the fleet: one row, or none before the first time. `source` names this history there;
-- `since`: events up to this id were published under an earlier source; `published`: no event up to this id is still to be
-- published, and some after it may be published already; `place`: the sequence number of the newest one in the stream of the
-- fleet, null: none is there yet.
CREATE TABLE outbox (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  source TEXT NOT NULL,
  since INTEGER NOT NULL,
  published INTEGER NOT NULL,
  place INTEGER
) STRICT;

-- Runs of jobs and commands. `id` is that of the event with which it began; `job` is empty for a command that somebody has typed;
-- `output`: the last part of it, only of the last runs of a job; `written`: how many characters there were in all.
CREATE TABLE job_runs (
  id INTEGER PRIMARY KEY,
  job TEXT NOT NULL,
  state TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  body TEXT NOT NULL,
  output TEXT,
  written INTEGER
) STRICT;
CREATE INDEX job_runs_by_job ON job_runs (job);
CREATE INDEX job_runs_that_run ON job_runs (id) WHERE state = 'running';

-- Jobs that somebody has paused. They stay so until somebody resumes them, whatever master runs by then.
CREATE TABLE paused_jobs (
  job TEXT PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Alerts that somebody has added. `settings` is JSON and holds secrets: addresses, passwords and signing keys. A number is never
-- given out twice, as events name alerts by it. `paused_ms`: null: it is sent.
CREATE TABLE alerts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  settings TEXT NOT NULL,
  paused_ms INTEGER,
  created_ms INTEGER NOT NULL,
  created_by TEXT NOT NULL
) STRICT;

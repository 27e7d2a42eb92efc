-- One row per kind of crash, for ever counted; the crashes themselves are thinned to a few samples.
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

-- Message and stack of each sample. Its rowid tells the group: crash_group * 256 + place.
CREATE VIRTUAL TABLE crash_texts USING fts5 (message, stack, tokenize = "unicode61 remove_diacritics 2 tokenchars '_$'");

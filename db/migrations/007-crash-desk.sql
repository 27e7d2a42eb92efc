-- Who takes care of a group, what people say of it, and how often it came in each hour.
ALTER TABLE crash_groups ADD COLUMN assignee TEXT;

CREATE TABLE crash_notes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  crash_group INTEGER NOT NULL REFERENCES crash_groups (id) ON DELETE CASCADE,
  at_ms INTEGER NOT NULL,
  actor TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX crash_notes_by_group ON crash_notes (crash_group);

-- `hour` counts from the epoch.
CREATE TABLE crash_hours (
  crash_group INTEGER NOT NULL REFERENCES crash_groups (id) ON DELETE CASCADE,
  hour INTEGER NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (crash_group, hour)
) STRICT, WITHOUT ROWID;

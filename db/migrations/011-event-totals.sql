-- How many events of each type are kept, so that what an app makes as often as it likes is forgotten among itself.
CREATE TABLE event_totals (
  type TEXT PRIMARY KEY,
  count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The oldest run still counts those that were forgotten; from now on each is taken off.
DELETE FROM span_counts WHERE span <= (SELECT min(id) / 1024 FROM events);
INSERT INTO span_counts (span, type, cause, count)
SELECT id / 1024, type, coalesce(cause, ''), count(*) FROM events
WHERE id < ((SELECT min(id) FROM events) / 1024 + 1) * 1024 GROUP BY 1, 2, 3;
INSERT INTO event_totals (type, count) SELECT type, sum(count) FROM span_counts GROUP BY type;

CREATE TRIGGER event_kept AFTER INSERT ON events BEGIN
  INSERT INTO event_totals (type, count) VALUES (new.type, 1) ON CONFLICT (type) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER event_forgotten AFTER DELETE ON events BEGIN
  UPDATE event_totals SET count = count - 1 WHERE type = old.type;
  UPDATE span_counts SET count = count - 1 WHERE span = old.id / 1024 AND type = old.type AND cause = coalesce(old.cause, '');
  DELETE FROM span_counts WHERE span = old.id / 1024 AND type = old.type AND cause = coalesce(old.cause, '') AND count <= 0;
END;

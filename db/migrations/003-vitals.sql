-- How the workers felt, one row per step for the cluster and all its slots together: a chart of a day is 1440 rows, not
-- 1440 for each slot. `body` is packed, see server/vitals/codec.js; `seconds` is how much of the step it covers.
CREATE TABLE vitals (
  step_s INTEGER NOT NULL,
  at_s INTEGER NOT NULL,
  seconds INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (step_s, at_s)
) STRICT, WITHOUT ROWID;

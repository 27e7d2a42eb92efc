-- Runs of jobs and commands. `id` is that of the event with which it began; `job` is empty for a command that somebody has typed;
-- `output`: the last part of it, only of the last runs of a job.
CREATE TABLE job_runs (
  id INTEGER PRIMARY KEY,
  job TEXT NOT NULL,
  state TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  body TEXT NOT NULL,
  output TEXT
) STRICT;
CREATE INDEX job_runs_by_job ON job_runs (job);
CREATE INDEX job_runs_that_run ON job_runs (id) WHERE state = 'running';

-- Jobs that somebody has paused. They stay so until somebody resumes them, whatever master runs by then.
CREATE TABLE paused_jobs (
  job TEXT PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  actor TEXT NOT NULL
) STRICT, WITHOUT ROWID;

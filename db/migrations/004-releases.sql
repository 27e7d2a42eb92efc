-- What has been deployed. `body` is what may be shown; `arguments` is what its workers are started with; `marks` says of
-- each variable of their environment whether it is another one now, without telling its value.
CREATE TABLE releases (
  number INTEGER PRIMARY KEY,
  outcome TEXT,
  deployed_ms INTEGER,
  body TEXT NOT NULL,
  arguments TEXT NOT NULL,
  marks TEXT NOT NULL
) STRICT;

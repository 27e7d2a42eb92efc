// Made from the tables of options and events by `node test/support/manual-tables.js`.

/** @typedef {'master.started' | 'master.waiting' | 'master.stopped' | 'master.upgrading' | 'master.upgraded' | 'master.upgrade-failed' | 'keeper.lost' | 'worker.forked' | 'worker.online' | 'worker.listening' | 'worker.ready' | 'worker.no-server' | 'worker.listens-late' | 'worker.thread-port-taken' | 'worker.warm-up-failed' | 'worker.standby' | 'worker.promoted' | 'worker.draining' | 'worker.exited' | 'worker.unresponsive' | 'worker.responsive' | 'worker.killed' | 'worker.recycling' | 'worker.recycle-failed' | 'recycling.slowed' | 'worker.message' | 'worker.unanswered' | 'worker.orphaned' | 'worker.restarted' | 'worker.crash-looping' | 'worker.recovered' | 'worker.drifted' | 'standby.useless' | 'slot.finished' | 'slot.held' | 'slot.resumed' | 'crash.group-new' | 'crash.group-returned' | 'crash.group-resolved' | 'crash.group-muted' | 'crash.group-reopened' | 'crash.group-assigned' | 'crash.note-added' | 'crash.note-removed' | 'fleet.connected' | 'fleet.away' | 'fleet.name-taken' | 'fleet.forgotten' | 'fleet.abort-refused' | 'fleet.rollout-started' | 'fleet.rollout-paused' | 'fleet.rollout-resumed' | 'fleet.rollout-aborted' | 'fleet.rollout-held' | 'fleet.rollout-rolling-back' | 'fleet.rollout-succeeded' | 'fleet.rollout-failed' | 'fleet.rollout-rolled-back' | 'restart.skipped' | 'rollout.started' | 'rollout.step' | 'rollout.held' | 'rollout.paused' | 'rollout.resumed' | 'rollout.promoted' | 'rollout.judged' | 'rollout.rolling-back' | 'rollout.rolled-back' | 'rollout.succeeded' | 'rollout.failed' | 'hook.started' | 'hook.succeeded' | 'hook.failed' | 'notice.acknowledged' | 'message.sent' | 'diagnostics.started' | 'diagnostics.finished' | 'diagnostics.failed' | 'diagnostics.downloaded' | 'diagnostics.deleted' | 'notify.failed' | 'access.signed-in' | 'access.switched' | 'access.used' | 'access.refused' | 'token.created' | 'token.revoked' | 'webhook.test' | 'webhook.retried' | 'scale.changed' | 'config.changed' | 'socket.unused' | 'release.created' | 'history.degraded' | 'history.recovered' | 'unexpected'} EventType */

/**
 * What a config file can say.
 * @typedef {object} DeckOptions
 * @property {string} [name]  what this deck is called in the list of all, and addressed by with -n; default: the name of the app in the config file, else that of its package, else of its folder
 * @property {string} [entry]  what to start: a file, a folder, a command of an installed package (next), or npm, npx, yarn or pnpm with their args; default: "main" or the script "start" of the package.json in the working folder
 * @property {string} [script]  a script of package.json to start, instead of an entry
 * @property {string[]} [args]  arguments for the app
 * @property {string[]} [execArgv]  options of node itself for every worker, such as --max-old-space-size=512
 * @property {string} [cwd]  the folder that the app runs in; default: the working folder
 * @property {Record<string, string | null>} [env]  variables for the workers, over those of the master; null unsets one. Read again at each deploy
 * @property {string} [envFile]  a file of variables for the workers (NAME=value, a line each), below those of `env`; read again at each deploy
 * @property {'max' | number} [workers]  workers to run; max: one for each CPU that this process may use; default: `max`
 * @property {number} [standby]  further workers that have loaded the app and wait where it listens: one takes over the slot of a worker that dies within milliseconds; default: `0`
 * @property {'shared' | 'sticky' | 'round-robin'} [dispatch]  how connections reach workers; shared: each worker accepts by itself, the one that has been idle longest, sticky: the kernel keeps all connections of one client address with one slot, round-robin: the master hands them out in turn; default: `shared`
 * @property {object} [sticky]
 * @property {number} [sticky.failoverMs]  how long a slot may be without a worker that is ready before its clients go to the other slots; default: `2000`
 * @property {string} [instanceVariable]  the variable that tells a worker its number, from 0 on; where the shell, `env` or `envFile` sets it, that value stays; default: `NODE_APP_INSTANCE`
 * @property {number} [portPerSlot]  each slot has a port of its own besides: with 4000, slot 1 has 4001, slot 2 has 4002; 0: none; default: `0`
 * @property {string} [dataDir]  where the history, the admin token and the logs are kept; default: `.clusterdeck`
 * @property {object} [admin]
 * @property {string} [admin.host]  the address that the admin page listens on; default: `127.0.0.1`
 * @property {number} [admin.port]  the admin page's port; 0: any free one; default: `9777`
 * @property {string[]} [admin.allowedHosts]  more host names by which the admin page can be reached, as behind a proxy
 * @property {number} [admin.sessionTtlMs]  how long a browser stays signed in; default: `43200000`
 * @property {string} [admin.basePath]  the path below which a proxy shows the admin page; default: that of admin.publicUrl
 * @property {string} [admin.publicUrl]  the address by which people reach the admin page, as behind a proxy: sign-in links have it
 * @property {object} [admin.tls]
 * @property {string} [admin.tls.cert]  a certificate with its chain, as PEM: the admin page speaks https; a renewed one is taken within a minute
 * @property {string} [admin.tls.key]  the private key of that certificate, as PEM
 * @property {boolean} [admin.plainHttp]  with an admin.host that others reach: also without TLS, where the token can be read on the way; default: `false`
 * @property {object} [start]
 * @property {'one' | 'all'} [start.first]  how a deck starts where no worker has ever been ready; one: the first worker alone until it is ready, then the others, so that they do not all make the tables of an empty database at once, all: all at once; default: `one`
 * @property {object} [ready]
 * @property {'auto' | 'listening' | 'message' | 'online'} [ready.signal]  what says that a worker is ready; auto: that it listens, or has run for a while if it is no server, listening: that it listens, message: that it sends "ready", online: that it runs; default: `auto`
 * @property {number} [ready.timeoutMs]  how long a worker may take to get ready; default: `30000`
 * @property {'same' | 'any'} [ready.addresses]  where a new worker has to listen to be ready; same: wherever the worker before it did, so that an app which takes another port when its own is busy cannot leave the old one; any: anywhere; default: `same`
 * @property {string} [ready.path]  a path of the app, such as /health: a new worker accepts no connection until its app has answered there; ready.signal says when it is asked first
 * @property {number | string | (number | string)[]} [ready.status]  which answers say that it is ready; default: `200-399`
 * @property {number} [ready.intervalMs]  how long after any other answer the app is asked again; then twice as long each time, up to a second; default: `100`
 * @property {number} [ready.probeTimeoutMs]  how long one answer may take; default: `5000`
 * @property {string[]} [ready.warmup]  paths that are then requested in this order, before any connection; a bad answer is reported and stops nothing
 * @property {number} [ready.warmupRounds]  how many times all of them are requested; default: `1`
 * @property {object} [drain]
 * @property {number} [drain.idleGraceMs]  how long a draining worker leaves idle connections open; default: `5000`
 * @property {number} [drain.deadlineMs]  how long a draining worker may take to answer what it has; default: `30000`
 * @property {object} [stop]
 * @property {number} [stop.termGraceMs]  how long a worker has after SIGTERM before it is killed; default: `5000`
 * @property {'object' | 'text'} [stop.message]  what a worker is sent before that SIGTERM; object: { type: "shutdown", from: "master" }, text: "shutdown", as PM2 does; default: `object`
 * @property {object} [crash]
 * @property {number} [crash.graceMs]  how long a worker that ends by an exception may answer the requests it has; the rest gets a 500. 0: it ends at once; default: `1000`
 * @property {number} [orphanMs]  how long a worker goes on without a master if no next one takes over; default: `60000`
 * @property {object} [keeper]
 * @property {number} [keeper.giveUpAfter]  the keeper ends once its master has died this often in a row; 0: never; default: `0`
 * @property {number} [keeper.hungAfterMs]  how long the master may be silent before the keeper ends it and starts the next one; 0: no limit; default: `10000`
 * @property {object} [restart]
 * @property {'always' | 'on-failure' | 'never'} [restart.policy]  which ends of a worker bring another one; on-failure: all but exit code 0, never: none, as for a job; default: `always`
 * @property {string} [restart.cron]  when all workers are restarted, in the time zone of this machine, such as "0 4 * * *"; empty: never
 * @property {number} [restart.minDelayMs]  the first delay before a worker that keeps dying is started again; default: `100`
 * @property {number} [restart.maxDelayMs]  the longest such delay; default: `30000`
 * @property {number} [restart.resetAfterMs]  how long a worker has to stay up for the delay to start anew; default: `60000`
 * @property {object} [restart.intensity]
 * @property {number} [restart.intensity.restarts]  a slot with more restarts than this within the window is shown as crash-looping; default: `5`
 * @property {number} [restart.intensity.windowMs]  the window in which restarts are counted; default: `60000`
 * @property {object} [rollout]
 * @property {'start-first' | 'stop-first'} [rollout.order]  which goes first where a worker is replaced, in a rollout and otherwise; stop-first: the old one has ended before the new one is started, so that no two of a slot live side by side; default: `start-first`
 * @property {number | string} [rollout.surge]  how many workers a deploy replaces at the same time; default: `1`
 * @property {number} [rollout.minReadyMs]  how long a new worker has to be ready, and not crash, before the old one drains; default: `0`
 * @property {object} [rollout.canary]
 * @property {number} [rollout.canary.workers]  new workers that first serve beside all old ones and are compared with them; 0: none; default: `0`
 * @property {number} [rollout.canary.durationMs]  how long these serve before they are judged; default: `30000`
 * @property {object} [rollout.limits]
 * @property {number} [rollout.limits.crashes]  how many workers of the new release may crash before the deploy has failed; default: `0`
 * @property {number} [rollout.limits.errorRate]  by how much the new workers' share of 5xx answers may exceed the old ones'; default: `0.05`
 * @property {number} [rollout.limits.p99Ratio]  how many times the old workers' latency the new ones' may be, after warm-up; default: `3`
 * @property {number} [rollout.limits.slowerMs]  a difference of latency that is smaller than this does not count; default: `50`
 * @property {number} [rollout.limits.warmupMs]  what a worker answers for so long after its first answer does not count for latency, and the new workers have to be slower in three stretches of this length; default: `5000`
 * @property {number} [rollout.limits.minRequests]  with fewer answers the new workers are not judged; default: `50`
 * @property {number} [rollout.limits.readyTimeoutMs]  how long a new worker may take to get ready in a rollout; 0: ready.timeoutMs; default: `0`
 * @property {number} [rollout.progressDeadlineMs]  a rollout without progress for this long, a soak aside, fails; paused time does not count; default: `600000`
 * @property {'rollback' | 'hold'} [rollout.onFailure]  what a failed deploy does: take back what it has replaced, or stop where it is and wait for an operator; default: `rollback`
 * @property {number} [rollout.guardMs]  how long a release is watched after its deploy: a crash loop rolls it back, once; 0: not at all; default: `300000`
 * @property {object} [watchdog]
 * @property {number} [watchdog.timeoutMs]  how long a worker's event loop may be silent before it is replaced and killed; 0: no limit; default: `10000`
 * @property {'on' | 'off'} [watchdog.stack]  whether the stack of such a worker is read first; its inspector is open on the loopback address for that moment; default: `on`
 * @property {object} [recycle]
 * @property {number} [recycle.maxRssBytes]  a worker that holds more memory than this for 5 seconds is replaced; 0: no limit; default: `0`
 * @property {number} [recycle.maxAgeMs]  a worker is replaced once it has served this long, or up to a tenth less; 0: never; default: `0`
 * @property {number} [recycle.maxRequests]  a worker is replaced once it has begun this many requests, or up to a tenth fewer; 0: never; default: `0`
 * @property {object} [releases]
 * @property {'auto' | 'snapshot' | 'live'} [releases.mode]  what a deploy pins; auto: what the entry's symbolic link points to, or a plain folder as it is; snapshot: a copy of the app's package folder; live: nothing; default: `auto`
 * @property {string} [releases.root]  the folder below which a deploy may name a path; without it, no deploy may
 * @property {number} [releases.keep]  how many releases are kept; one that a worker runs always is; default: `10`
 * @property {'mark' | 'hold'} [releases.onDrift]  where the files of a release have changed under its workers: mark a replacement as drifted, or let its slot wait until they are restored or something is deployed; default: `mark`
 * @property {object} [hooks]
 * @property {{ command: string[], timeoutMs?: number }} [hooks.beforeStart]  run once by a start, such as migrations, before the first worker is started: where it fails, so does the start; not where a master only replaces one that has died. Read again at each deploy
 * @property {{ command: string[], timeoutMs?: number }} [hooks.beforeDeploy]  run once by a deploy, such as migrations, before it replaces anything: where it fails, so does the deploy. Read again at each deploy
 * @property {{ command: string[], timeoutMs?: number }} [hooks.afterDeploy]  run after a deploy that has succeeded. Read again at each deploy
 * @property {{ command: string[], timeoutMs?: number }} [hooks.onCrash]  run when a worker has crashed, at most once a minute. Read again at each deploy
 * @property {boolean} [watch]  for development: roll out when a file changes that the workers have loaded; default: `false`
 * @property {object} [diagnostics]
 * @property {number} [diagnostics.maxFiles]  how many files of diagnostics are kept; default: `20`
 * @property {number} [diagnostics.maxBytes]  how large they may be together; the newest stays in any case; default: `1073741824`
 * @property {{ url: string, events?: string[], secret: string }[]} [notify]  webhooks
 * @property {object} [fleet]
 * @property {string[]} [fleet.servers]  servers of NATS with JetStream, by which decks on several machines see each other and roll out host by host (separated by commas); none: this deck is alone
 * @property {string} [fleet.name]  of the fleet: decks of one name belong together; default: `default`
 * @property {string} [fleet.member]  what this deck is called there, as no other one is; default: the names of the host and of the app
 * @property {Record<string, string>} [fleet.labels]  by which members are picked and put in order
 * @property {'read' | 'operate' | 'nothing'} [fleet.accept]  what other members may do to this one: nothing, read what its viewers can, or do what its operators can: restart it, deploy to it; default: `read`
 * @property {string} [fleet.token]  of the servers; better as a variable, for others see flags
 * @property {string} [fleet.credentials]  a file of NATS credentials (.creds)
 * @property {object} [fleet.tls]
 * @property {string} [fleet.tls.ca]  the certificate of who signs those of the servers, as PEM
 * @property {string} [fleet.tls.cert]  a certificate for this deck, as PEM
 * @property {string} [fleet.tls.key]  its private key, as PEM
 * @property {object} [logs]
 * @property {number} [logs.maxBytes]  how large a log file of a slot gets before its older lines are moved into another one; default: `10485760`
 * @property {number} [logs.maxFiles]  how many such files are kept of each slot and stream; default: `5`
 * @property {'auto' | 'on' | 'off'} [logs.mirror]  whether the master repeats the output of the workers; auto: if its own goes to a terminal; default: `auto`
 * @property {object} [history]
 * @property {number} [history.maxAgeMs]  how long events are kept; default: `2592000000`
 * @property {number} [history.maxEvents]  how many events are kept; messages of the app have a tenth of it beside them; default: `1000000`
 */

export {}

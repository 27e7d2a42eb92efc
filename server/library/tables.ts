// Made from the tables of options and events by `node test/support/manual-tables.ts`.

export type EventType =
  'master.started' | 'master.waiting' | 'master.stopped' | 'master.upgrading' | 'master.upgraded' |
  'master.upgrade-failed' | 'keeper.lost' | 'app.adopted' | 'app.added' | 'app.started' | 'app.stopped' |
  'app.failed' | 'app.recovered' | 'app.removed' | 'worker.forked' | 'worker.online' | 'worker.listening' |
  'worker.ready' | 'worker.no-server' | 'worker.listens-late' | 'worker.thread-port-taken' | 'worker.warm-up-failed'
  | 'worker.standby' | 'worker.promoted' | 'worker.draining' | 'worker.kept' | 'worker.closing' | 'worker.exited' |
  'worker.unresponsive' | 'worker.responsive' | 'worker.killed' | 'worker.recycling' | 'memory.growing' |
  'memory.examined' | 'worker.recycle-failed' | 'recycling.slowed' | 'worker.message' | 'worker.unanswered' |
  'worker.orphaned' | 'worker.restarted' | 'worker.crash-looping' | 'worker.recovered' | 'worker.drifted' |
  'route.slowed' | 'route.recovered' | 'standby.useless' | 'slot.finished' | 'slot.held' | 'slot.resumed' |
  'crash.group-new' | 'crash.group-returned' | 'crash.group-resolved' | 'crash.group-muted' | 'crash.group-reopened'
  | 'crash.records-lost' | 'fleet.connected' | 'fleet.away' | 'fleet.host-silent' | 'fleet.host-back' |
  'fleet.host-left' | 'fleet.host-forgotten' | 'fleet.name-taken' | 'fleet.forgotten' | 'fleet.abort-refused' |
  'fleet.rollout-started' | 'fleet.rollout-paused' | 'fleet.rollout-resumed' | 'fleet.rollout-aborted' |
  'fleet.rollout-held' | 'fleet.rollout-rolling-back' | 'fleet.rollout-succeeded' | 'fleet.rollout-failed' |
  'fleet.rollout-rolled-back' | 'clock.set-back' | 'restart.skipped' | 'rollout.started' | 'rollout.step' |
  'rollout.held' | 'rollout.paused' | 'rollout.resumed' | 'rollout.promoted' | 'rollout.judged' |
  'rollout.rolling-back' | 'rollout.rolled-back' | 'rollout.succeeded' | 'rollout.failed' | 'start.rolled-back' |
  'rollback.refused' | 'hook.started' | 'hook.succeeded' | 'hook.failed' | 'job.started' | 'job.step' |
  'job.continued' | 'job.succeeded' | 'job.failed' | 'job.command-failed' | 'job.skipped' | 'job.missed' |
  'job.interrupted' | 'job.acknowledged' | 'job.paused' | 'job.resumed' | 'notice.acknowledged' | 'message.sent' |
  'diagnostics.started' | 'diagnostics.finished' | 'diagnostics.failed' | 'diagnostics.downloaded' |
  'diagnostics.deleted' | 'alert.failed' | 'access.signed-in' | 'access.switched' | 'access.used' | 'access.refused'
  | 'token.created' | 'token.revoked' | 'alert.added' | 'alert.changed' | 'alert.deleted' | 'alert.tested' |
  'alert.retried' | 'scale.changed' | 'config.changed' | 'socket.unused' | 'secrets.failed' | 'secrets.read' |
  'release.created' | 'telemetry.failed' | 'telemetry.recovered' | 'history.degraded' | 'history.recovered' |
  'unexpected'

/** What a config file can say. */
export type DeckOptions = {
  /** name of this deck, also for -n; default: the name of the app in the config file, else of its package, else of its folder */
  name?: string
  /** what to start: a file, a folder, a command of an installed package (next), npm, npx, yarn or pnpm, or any other program (python3); default: "main" or script "start" of package.json */
  entry?: string
  /** a script of package.json to start instead of an entry */
  script?: string
  /** arguments for the app */
  args?: string[]
  /** Node options for every worker, such as --max-old-space-size=512 */
  execArgv?: string[]
  /** the Node of the app: its path, or a version that nvm, fnm, volta, mise or asdf has installed, or that is the node of PATH; default: that of .nvmrc, .node-version or volta, if it is installed, else the one with which the command was typed */
  node?: number | string
  /** the folder in which the app runs; default: the working folder */
  cwd?: string
  /** variables for the workers, over those of the master; null unsets one. Read again at each deploy */
  env?: Record<string, string | null>
  /** a file of variables for the workers, one NAME=value a line; `env` counts more. Read again at each deploy */
  envFile?: string
  /** where variables for the workers come from that are on no disk; they count more than `env`. Read again at each deploy */
  secrets?: { from: 'command', command: string[], format?: 'json' | 'env', timeoutMs?: number } | { from: 'file', file: string, format?: 'json' | 'env' } | { from: 'systemd-creds' }
  /** how many workers run; max: one for each CPU that this process may use; default: `max` */
  workers?: 'max' | number
  /** how many more workers load the app and wait: one replaces a worker that dies, within milliseconds; default: `0` */
  standby?: number
  /** who gets a connection; shared: the worker that is idle longest, sticky: one slot per client address, or with sticky.by the worker that has the session; default: `shared` */
  dispatch?: 'shared' | 'sticky'
  sticky?: {
    by?: {
      /** the header of requests and answers that names a session; with dispatch sticky, its requests reach the worker that has made it */
      header?: string
      /** the cookie that names a session, as an answer sets it */
      cookie?: string
      /** the parameter of the URL that names a session, as an answer tells it at its beginning; sid for Socket.IO */
      query?: string
      /** where in the path of a URL a client names its session: at :session; each other :word is any part; the worker that answers it first has it */
      path?: string
    }
    /** how long a replaced worker is kept for a session of sticky.by without a request; default: `600000` */
    idleMs?: number
    /** how long a slot may be without a ready worker before its clients go to other slots; default: `2000` */
    failoverMs?: number
  }
  /** what a worker does that gets over 10 % more requests than the others have on average; on: some of its answers say "Connection: close", and these connections come back to others; not with dispatch "sticky"; default: `on` */
  rebalance?: 'on' | 'off'
  /** whether Node keeps what it has compiled of the app in the data folder, so that the next workers start sooner; Node 22.1 and later. A worker writes it as it ends; default: `off` */
  compileCache?: 'off' | 'on'
  /** the variable that holds the number of a worker, from 0; a value that the shell, `env` or `envFile` sets stays; default: `NODE_APP_INSTANCE` */
  instanceVariable?: string
  /** gives each slot its own port as well: with 4000, slot 1 has 4001, slot 2 has 4002; 0: none; default: `0` */
  portPerSlot?: number
  /** where the history, the admin token and the logs are kept; default: `.clusterdeck` */
  dataDir?: string
  admin?: {
    /** the address on which the admin page listens; default: `127.0.0.1` */
    host?: string
    /** the port of the admin page; 0: any free one; default: `9777` */
    port?: number
    /** more host names of the admin page, such as that of a proxy */
    allowedHosts?: string[]
    /** how long a browser stays signed in; default: `43200000` */
    sessionTtlMs?: number
    /** the path at which a proxy shows the admin page; default: that of admin.publicUrl */
    basePath?: string
    /** the address of the admin page behind a proxy; sign-in links use it */
    publicUrl?: string
    tls?: {
      /** a certificate with its chain, as PEM: the admin page uses https; a renewed file is loaded within a minute */
      cert?: string
      /** the private key of that certificate, as PEM */
      key?: string
    }
    /** allows an admin.host that others reach without TLS, although the token can be read on the way; default: `false` */
    plainHttp?: boolean
  }
  start?: {
    /** how an app starts that has never been ready; one: one worker first, so that only one creates the tables of an empty database, all: all at once; default: `one` */
    first?: 'one' | 'all'
  }
  ready?: {
    /** when a worker is ready; auto: it listens, or has run for a while if it is no server, listening: it listens, message: it sends "ready", notify: it says READY=1 by sd_notify, online: it runs; default: `auto` */
    signal?: 'auto' | 'listening' | 'message' | 'notify' | 'online'
    /** a worker is ready once it writes a line with this text, or one that matches this /regular expression/, to stdout or stderr */
    log?: string
    /** how long a worker may take to become ready; default: `30000` */
    timeoutMs?: number
    /** where a new worker must listen to be ready; same: where the one before it did (some apps take another port if theirs is busy), any: anywhere; default: `same` */
    addresses?: 'same' | 'any'
    /** a path of the app, such as /health, that must answer before a new worker accepts connections */
    path?: string
    /** which answers mean that it is ready; default: `200-399` */
    status?: number | string | (number | string)[]
    /** how long after another answer the path is requested again; doubles each time, up to 1 s; default: `100` */
    intervalMs?: number
    /** how long one answer may take; default: `5000` */
    probeTimeoutMs?: number
    /** paths that are requested next, in this order, before any connection; a bad answer is reported and stops nothing */
    warmup?: string[]
    /** how many times all of ready.warmup are requested; default: `1` */
    warmupRounds?: number
  }
  drain?: {
    /** how long a draining worker keeps idle connections open; default: `5000` */
    idleGraceMs?: number
    /** how long a draining worker may take to finish its requests; default: `30000` */
    deadlineMs?: number
    /** a request whose bytes have moved within this time, up or down, is not cut off at drain.deadlineMs; default: `10000` */
    stalledMs?: number
    /** how long a replaced worker keeps its WebSockets, event streams, TCP connections and moving transfers; 0: not at all; default: `14400000` */
    longLivedMs?: number
    /** how many replaced workers are kept for their long-lived connections; the oldest one ends first. auto: two for each worker that should run; default: `auto` */
    maxOldWorkers?: 'auto' | number
    /** over how long the long-lived connections of a replaced worker are closed, so that clients do not all come back at once; default: `30000` */
    spreadMs?: number
  }
  stop?: {
    /** how long a worker has after SIGTERM, or a program of another language after stop.signal, before it is killed; default: `5000` */
    termGraceMs?: number
    /** what a worker is sent before SIGTERM; object: { type: "shutdown", from: "master" }, text: "shutdown", as PM2 does; default: `object` */
    message?: 'object' | 'text'
    /** the signal that tells a program of another language to finish its requests and end; SIGQUIT for nginx and PHP-FPM; default: `SIGTERM` */
    signal?: 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | 'SIGHUP' | 'SIGUSR1' | 'SIGUSR2' | 'SIGWINCH'
  }
  crash?: {
    /** how long a worker may finish its other requests after an exception, and what clients are just sending; the rest gets a 500. 0: it ends at once; default: `1000` */
    graceMs?: number
  }
  /** how long a worker runs without a master if no new one takes over; default: `60000` */
  orphanMs?: number
  keeper?: {
    /** the keeper ends after its master has died this many times in a row; 0: never; default: `0` */
    giveUpAfter?: number
    /** how long the master may be silent before the keeper replaces it; 0: no limit; default: `10000` */
    hungAfterMs?: number
  }
  restart?: {
    /** which workers are started again after their end; on-failure: all but those with exit code 0, never: none, as for a job; default: `always` */
    policy?: 'always' | 'on-failure' | 'never'
    /** when all workers are restarted, in the time zone of the app (TZ) or else of this machine, such as "0 4 * * *"; empty: never */
    cron?: string
    /** the first delay between the starts of a worker that keeps crashing; default: `100` */
    minDelayMs?: number
    /** the longest such delay; default: `30000` */
    maxDelayMs?: number
    /** how long a worker must run for the delay to start anew; default: `60000` */
    resetAfterMs?: number
    intensity?: {
      /** a slot with more restarts than this in the window is in a crash loop; default: `5` */
      restarts?: number
      /** the window in which restarts are counted; default: `60000` */
      windowMs?: number
    }
  }
  rollout?: {
    /** which worker goes first in a replacement; start-first: the new one is ready before the old one drains, stop-first: the old one ends first; default: `start-first` */
    order?: 'start-first' | 'stop-first'
    /** how many workers a deploy replaces at the same time; default: `1` */
    surge?: number | string
    /** how long a new worker must be ready without a crash before the old one drains; default: `0` */
    minReadyMs?: number
    canary?: {
      /** how many new workers serve beside all old ones first and are compared with them; 0: none; default: `0` */
      workers?: number
      /** how long these serve before they are judged; default: `30000` */
      durationMs?: number
    }
    limits?: {
      /** how many workers of the new release may crash before the deploy fails; default: `0` */
      crashes?: number
      /** by how much the new workers' share of 5xx answers may exceed that of the old ones; default: `0.05` */
      errorRate?: number
      /** how many times the old workers' latency the new ones' may be, after warm-up; programs in other languages are compared by CPU and memory instead; default: `3` */
      p99Ratio?: number
      /** a smaller difference of latency is ignored; default: `50` */
      slowerMs?: number
      /** how long after its first answer the latency of a worker is ignored; new workers fail if they are slower in three periods of this length; default: `5000` */
      warmupMs?: number
      /** with fewer answers the new workers are not judged; default: `50` */
      minRequests?: number
      /** how long a new worker may take to become ready in a rollout; 0: ready.timeoutMs; default: `0` */
      readyTimeoutMs?: number
    }
    /** a rollout fails after this long without progress, soaks and pauses aside; default: `600000` */
    progressDeadlineMs?: number
    /** what a failed deploy does; rollback: it rolls back, hold: it stops and waits for an operator; default: `rollback` */
    onFailure?: 'rollback' | 'hold'
    /** how long a release is watched after its deploy: a crash loop, or nothing but 5xx, rolls it back, once; 0: not watched; default: `300000` */
    guardMs?: number
  }
  watchdog?: {
    /** a worker whose event loop is blocked for this long is replaced and killed, and so is a program of another language that has said WATCHDOG=1 by sd_notify and is silent for this long from then on; 0: no limit; default: `10000` */
    timeoutMs?: number
    /** whether the stack of such a worker is read first; this opens its inspector on the loopback address for a moment; default: `on` */
    stack?: 'on' | 'off'
  }
  limits?: {
    /** the most memory that the processes of a worker may have together before the kernel kills one of them; 0: no limit; default: `0` */
    memoryBytes?: number
    /** how many CPUs the processes of a worker may keep busy together, such as 1.5; 0: no limit; default: `0` */
    cpus?: '0' | number
  }
  recycle?: {
    /** a worker is replaced after 5 s with more memory than this; 0: never; default: `0` */
    maxRssBytes?: number
    /** a worker is replaced after it has served this long, or up to a tenth less; 0: never; default: `0` */
    maxAgeMs?: number
    /** a worker is replaced after this many requests, or up to a tenth fewer; 0: never; default: `0` */
    maxRequests?: number
  }
  releases?: {
    /** what a deploy pins; auto: the target of the entry's symbolic link, or the folder as it is, folder: a copy of the app's folder, live: nothing; default: `auto` */
    mode?: 'auto' | 'folder' | 'live'
    /** with releases.mode "folder": what all releases have in common, such as .env, uploads/, data.sqlite */
    shared?: string[]
    /** with releases.mode "folder": what is not copied, and may be lost with a release, such as tmp/ */
    exclude?: string[]
    /** the repository of deploy --git; default: that of the app's folder. git fetches from an address with the keys of this user; a token in it is shown to nobody */
    git?: string
    /** the folder below which a deploy may name a path; without it, no deploy can */
    root?: string
    /** how many releases are kept; one in use always is; default: `10` */
    keep?: number
    /** when a worker is replaced whose files have changed; mark: the new one is marked as drifted, hold: its slot waits for the old files or a deploy; default: `mark` */
    onDrift?: 'mark' | 'hold'
  }
  hooks?: {
    /** installs and builds the commit of deploy --git in its package folder; default: guessed from the lock file and the script "build". Read again at each deploy */
    build?: { command: string[], timeoutMs?: number }
    /** runs before the first worker of a start, such as migrations; if it fails, the start fails. Not when a dead master is replaced. Read again at each deploy */
    beforeStart?: { command: string[], timeoutMs?: number }
    /** runs before a deploy replaces anything, such as migrations; if it fails, the deploy fails. Read again at each deploy */
    beforeDeploy?: { command: string[], timeoutMs?: number }
    /** runs after a deploy has succeeded. Read again at each deploy */
    afterDeploy?: { command: string[], timeoutMs?: number }
    /** runs after a worker has crashed, at most once a minute. Read again at each deploy */
    onCrash?: { command: string[], timeoutMs?: number }
  }
  /** commands that run beside the workers, at the times of a cron expression or when somebody asks. Read again at each deploy */
  jobs?: Record<string, { cron?: string, command: string | string[], overlap?: 'skip' | 'queue' | 'replace', timeoutMs?: number, timeZone?: string }>
  /** for development: deploy when a file changes that the workers have loaded; default: `false` */
  watch?: boolean
  diagnostics?: {
    /** whether a Node.js worker that is recycled by recycle.maxRssBytes is examined once it has drained, so that the history names what held its memory; at most once an hour for a release; default: `on` */
    leaks?: 'on' | 'off'
    /** continuous profiling: a CPU profile of 5 s of each Node.js worker each minute; those of the last hour are kept, at most 10 MB; default: `off` */
    profiling?: 'off' | 'on'
    /** how many files of diagnostics are kept; default: `20` */
    maxFiles?: number
    /** how large they may be together; the newest is always kept; default: `1073741824` */
    maxBytes?: number
  }
  /** alerts that the dashboard shows and cannot change */
  alerts?: { kind: 'slack' | 'discord' | 'teams' | 'mail' | 'sentry' | 'webhook', name?: string, events?: string[], url?: string, dsn?: string, secret?: string, to?: string[], from?: string, host?: string, port?: number, user?: string, password?: string }[]
  fleet?: {
    /** NATS servers with JetStream, by which hosts on several machines see each other and deploy in turn (separated by commas); none: this host is alone */
    servers?: string[]
    /** name of the fleet: hosts with the same one belong together; default: `default` */
    name?: string
    /** name of this host in the fleet, where it must be unique; default: the name of the machine, for a deck in the foreground with that of the app */
    member?: string
    /** labels by which members are selected and ordered */
    labels?: Record<string, string>
    /** what other members may do to this host and its apps; read: what viewers can, operate: what operators can, such as restart and deploy, nothing: nothing; default: `read` */
    accept?: 'read' | 'operate' | 'nothing'
    /** the token of the NATS servers; better set as a variable, as others can see flags */
    token?: string
    /** a file of NATS credentials (.creds) */
    credentials?: string
    tls?: {
      /** the CA certificate of the NATS servers, as PEM */
      ca?: string
      /** a certificate for this host, as PEM */
      cert?: string
      /** its private key, as PEM */
      key?: string
    }
  }
  logs?: {
    /** how large a log file of a slot gets before its older lines move to another one; default: `10485760` */
    maxBytes?: number
    /** how many such files are kept for each slot and stream; default: `5` */
    maxFiles?: number
    /** whether the master prints the output of the workers; auto: if its own goes to a terminal; default: `auto` */
    mirror?: 'auto' | 'on' | 'off'
  }
  telemetry?: {
    /** whether /metrics also has what the app counts by prom-client, summed over all workers; default: `on` */
    appMetrics?: 'on' | 'off'
    /** whether requests are counted by route, such as GET /users/:id, with their latencies and errors; default: `on` */
    routes?: 'on' | 'off'
    /** whether metrics and events go to the OpenTelemetry collector that OTEL_EXPORTER_OTLP_ENDPOINT names, if that is set; default: `on` */
    otlp?: 'on' | 'off'
    /** whether events go to journald, with fields such as CLUSTERDECK_EVENT; default: `off` */
    journald?: 'off' | 'on'
    /** a syslog that gets the events: that of this machine, or another one by UDP (RFC 5424) */
    syslog?: string
    /** whether the collector, journald and syslog that get the events also get what the workers write, each line as a record; default: `off` */
    workerOutput?: 'off' | 'on'
  }
  history?: {
    /** how long events are kept; default: `2592000000` */
    maxAgeMs?: number
    /** how many events are kept; messages of the app have another tenth of that; default: `1000000` */
    maxEvents?: number
  }
}

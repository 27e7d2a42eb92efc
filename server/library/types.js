/**
 * What start() takes: the options of a config file, and those that only a program can set.
 * @typedef {import('./tables.js').DeckOptions & Surroundings} StartOptions
 */

/**
 * The options that only a program can set.
 * @typedef {object} Surroundings
 * @property {string} [configFile]  a config file, for options that are not given here; without it none is read
 * @property {NodeJS.WritableStream} [stdout]  where the deck prints what happens, as `clusterdeck start` does; default: nowhere
 * @property {NodeJS.WritableStream} [stderr]  where it prints errors; default: nowhere
 * @property {AbortSignal} [signal]  gives up a start that takes too long, such as `AbortSignal.timeout(60_000)`
 */

/**
 * A cluster that this program has started.
 * @typedef {object} Deck
 * @property {string} adminUrl  of the admin page and the REST API
 * @property {string} token  for the REST API: whoever has it may do everything
 * @property {() => string} signInLink  makes a link that signs in the first browser that opens it, within 15 minutes
 * @property {DeckEvents} events  emits each event as `event`, and by its type
 * @property {() => Status} snapshot  its present status, as `GET /api/v1/status` has it
 * @property {(order?: { note?: string }) => Promise<Rollout>} restart  replaces all workers; resolves with the finished rollout, however it ended
 * @property {(order?: { note?: string, path?: string, strategy?: Strategy }) => Promise<Rollout>} deploy  deploys the code on the disk;
 *   resolves with the finished rollout, however it ended
 * @property {(order?: { note?: string, release?: string, strategy?: Strategy }) => Promise<Rollout>} rollback  rolls back to the release before, or to
 *   the named one; resolves with the finished rollout, however it ended
 * @property {(workers: number) => Promise<Status>} scale  resolves once this many workers are ready and no others are left
 * @property {(type: string, data?: unknown, order?: { worker?: number }) => Promise<{ workers: number[] }>} send  sends
 *   `{ type, from: 'admin', data }` to the app, in one worker or in all that are ready; resolves with the ids of the workers to which it was sent
 * @property {() => Promise<void>} stop  drains and ends all workers; resolves once nothing of the deck is left
 * @property {Promise<void>} stopped  resolves once nothing of the deck is left, even if others have stopped it
 */

/**
 * Emits each event as `event`, and by its type.
 * @typedef {import('node:events').EventEmitter<Record<import('./tables.js').EventType | 'event', [event: DeckEvent]>>} DeckEvents
 */

/**
 * A fact about the cluster. Fields that do not apply are null.
 * @typedef {object} DeckEvent
 * @property {number} id  ascending
 * @property {string} at  ISO 8601, UTC
 * @property {import('./tables.js').EventType | (string & {})} type  such as `worker.exited`
 * @property {string | null} cause
 * @property {number | null} slot
 * @property {number | null} worker
 * @property {number | null} pid
 * @property {string | null} release
 * @property {number | null} rollout
 * @property {string | null} actor
 * @property {number | null} code
 * @property {string | null} signal
 * @property {number | null} uptimeMs
 * @property {string | null} message
 * @property {Record<string, any> | null} detail
 */

/**
 * How a deploy replaces workers: what is not given is as the options say.
 * @typedef {Omit<NonNullable<import('./tables.js').DeckOptions['rollout']>, 'guardMs'>} Strategy
 */

/**
 * The status of a deck at one moment. As everything that a deck returns, it is a frozen copy.
 * @typedef {object} Status
 * @property {'starting' | 'running' | 'stopping'} state
 * @property {{ pid: number, version: string, nodeVersion: string, startedAt: string, rssBytes: number, isShared: boolean }} master
 * @property {{ name: string, entry: string, cwd: string, addresses: string[], ownSockets: string | null }} app  `addresses`: URLs on which it listens;
 *   `ownSockets`: why its workers cannot share its sockets here; null: they do
 * @property {'shared' | 'sticky' | 'round-robin'} dispatch
 * @property {string | null} stickyBy  by what clients stay with a worker, such as `the header mcp-session-id`; null: dispatch is not sticky
 * @property {boolean | null} isEven  whether idle workers share connections evenly;
 *   null: none listens yet, or the addresses of the clients decide
 * @property {{ memoryBytes: number, cpus: number, problem: string | null }} limits  of each worker, 0: none; `problem`: why they are not kept here
 * @property {number} desiredWorkers
 * @property {number} readyWorkers
 * @property {number} finishedWorkers  slots whose program has ended with exit code 0, and is not started again by itself
 * @property {string | null} nextRestartAt  by restart.cron
 * @property {Release} release  the last one that was deployed successfully
 * @property {Rollout | null} rollout  the present one
 * @property {WorkerStatus[]} workers
 * @property {StandbyStatus} standby  the workers beside those of the slots
 * @property {{ problem: string | null, since: string | null, waiting: number, lost: number }} history  `problem`: why it cannot be written
 *   at the moment; `since`: the first event that it lacks; `waiting`: events that are written once it can be; `lost`: events that were too many to be kept
 * @property {{ problem: string | null }} secrets  `problem`: why no worker can be started
 * @property {number} lastEventId
 * @property {Health} health
 * @property {Notice[]} notices  newest first
 */

/**
 * Whether the deck serves, and what is wrong.
 * @typedef {object} Health
 * @property {'ok' | 'info' | 'drain' | 'warn' | 'bad' | 'idle'} tone
 * @property {string} text
 * @property {string} hint
 * @property {{ slots: number[], text: string, event: number | null, crashGroup: number | null, isNewInRelease: boolean }[]} reasons  why
 *   workers have died, if that still matters; `text` may hold what an app threw
 * @property {number} problems  how many things somebody should look at
 */

/**
 * Something has gone wrong, and nobody has acknowledged it. There is one notice for all events of its kind.
 * @typedef {object} Notice
 * @property {number} id  of its newest event
 * @property {'master-lost' | 'keeper-lost' | 'rollout-failed' | 'rolled-back' | 'upgrade-failed' | 'recycling-slowed' | 'history-degraded'} kind
 * @property {string} at
 * @property {string} firstAt  time of the first event that nobody has acknowledged
 * @property {number} count
 * @property {string} message
 * @property {string | null} endedAt  when it ended by itself
 */

/**
 * A worker, or a slot that has none at the moment.
 * @typedef {object} WorkerStatus
 * @property {number | null} id  null: no worker runs in this slot at the moment
 * @property {number} slot
 * @property {number | null} pid
 * @property {number | null} port  the port of its slot alone, see portPerSlot
 * @property {number} logSlot  the slot whose log has its output; 0: the log of standby workers
 * @property {string} state  `starting`, `ready`, `draining`, `stopping`, `unresponsive`, `backoff`, `held` or `finished`
 * @property {{ requests: number, transfers: number, webSockets: number, eventStreams: number, connections: number, sessions: number } | null} holds  what it still has while it drains
 * @property {string | null} keptUntil  it is replaced, and keeps its long-lived connections at most until then
 * @property {string} release
 * @property {string | null} startedAt
 * @property {string | null} readyAt
 * @property {string | null} retryAt  when a slot without a worker tries again
 * @property {{ at: string, worker: number, release: string, cause: string, code: number | null, succeeded: boolean } | null} finished
 *   the end of the program of a slot, if that is not started again by itself
 * @property {number} restarts  of its slot
 * @property {boolean} crashLooping
 * @property {boolean} drifted
 * @property {boolean} orphan  another master has left it behind
 * @property {Record<string, any> & { at: string, rssBytes: number, cpuPercent: number } | null} vitals  of its last second
 */

/**
 * Workers that have loaded the app and wait to replace one that dies.
 * @typedef {object} StandbyStatus
 * @property {number} wanted
 * @property {number} ready
 * @property {string | null} problem  why this release has none
 * @property {{ id: number, pid: number | null, state: string, release: string, startedAt: string, rssBytes: number | null }[]} workers
 */

/**
 * The code that workers run.
 * @typedef {object} Release
 * @property {string} id  such as `r12`
 * @property {string} entry
 * @property {string} path
 * @property {string} createdAt
 * @property {string | null} [note]
 * @property {{ name: string | null, version: string | null } | null} [package]
 * @property {{ commit: string, branch: string | null, isDirty: boolean | null, author?: string | null, subject?: string | null } | null} [git]
 */

/**
 * One restart of all workers, deploy or rollback.
 * @typedef {object} Rollout
 * @property {number} id
 * @property {'restart' | 'deploy' | 'rollback'} kind
 * @property {'preparing' | 'canary' | 'rolling' | 'paused' | 'held' | 'rolling-back' | 'succeeded' | 'rolled-back' | 'failed'} state
 * @property {boolean} done
 * @property {string} from  a release
 * @property {string | null} to  null: it is not prepared yet
 * @property {string} actor
 * @property {string | null} note
 * @property {string | null} reason  why it did not succeed
 * @property {string[]} warnings  what went wrong but did not make it fail
 * @property {{ name: 'beforeDeploy', state: 'due' | 'running' | 'passed' | 'failed' | 'ended', startedAt: string | null, finishedAt: string | null, output: string | null } | null} [hook]
 *   it runs before anything is replaced
 * @property {string} startedAt
 * @property {string | null} finishedAt
 * @property {string[] | null} [waitingFor]  apps of the same host that are rolled out first; null: it need not wait for its turn
 * @property {{ total: number, replaced: number }} progress
 * @property {RolloutStep[]} steps
 */

/**
 * What a rollout does in one slot.
 * @typedef {object} RolloutStep
 * @property {number} slot
 * @property {'pending' | 'stopping' | 'starting' | 'soaking' | 'ready' | 'draining' | 'done' | 'failed' | 'reverting' | 'reverted'} state
 * @property {number | null} oldWorker
 * @property {number | null} newWorker
 * @property {boolean} isCanary
 * @property {string | null} startedAt
 * @property {string | null} finishedAt
 */

export {}

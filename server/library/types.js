/**
 * What start() takes: what a config file can say, and what a program alone can.
 * @typedef {import('./tables.js').DeckOptions & Surroundings} StartOptions
 */

/**
 * What a program alone can say.
 * @typedef {object} Surroundings
 * @property {string} [configFile]  a config file, whose options count where these say nothing; without it none is read
 * @property {NodeJS.WritableStream} [stdout]  where the deck says what happens, as `clusterdeck start` does; without it nowhere
 * @property {NodeJS.WritableStream} [stderr]  where it says what goes wrong; without it nowhere
 * @property {AbortSignal} [signal]  gives up a start that takes too long, as `AbortSignal.timeout(60_000)`
 */

/**
 * A cluster that this program has started.
 * @typedef {object} Deck
 * @property {string} adminUrl  of the admin page and the REST API
 * @property {string} token  for the REST API: whoever has it may do everything
 * @property {() => string} signInLink  makes a link that signs in the first browser that opens it, within 15 minutes
 * @property {DeckEvents} events  emits each event as `event`, and by its type
 * @property {() => Status} snapshot  how it is now, as `GET /api/v1/status`
 * @property {(order?: { note?: string }) => Promise<Rollout>} restart  replaces all workers; resolves with the finished rollout, however it ended
 * @property {(order?: { note?: string, path?: string, strategy?: Strategy }) => Promise<Rollout>} deploy  rolls out what is on the disk; resolves with the finished rollout, however it ended
 * @property {(order?: { note?: string, release?: string, strategy?: Strategy }) => Promise<Rollout>} rollback  goes back to the release before, or to the one that is named; resolves with the finished rollout, however it ended
 * @property {(workers: number) => Promise<Status>} scale  resolves once as many are ready as are wanted, and no others are left
 * @property {(type: string, data?: unknown, order?: { worker?: number }) => Promise<{ workers: number[] }>} send  sends the app `{ type, from: 'admin', data }`, in one worker or in all that are ready; resolves with the ids of those to which it is on its way
 * @property {() => Promise<void>} stop  drains and ends all workers; resolves once nothing of the deck is left
 * @property {Promise<void>} stopped  resolves once nothing of the deck is left, whoever has stopped it
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
 * How a deploy goes about its work, where it differs from the options.
 * @typedef {Omit<NonNullable<import('./tables.js').DeckOptions['rollout']>, 'guardMs'>} Strategy
 */

/**
 * How a deck is at one moment. Like all that a deck hands out it is the caller's own, and frozen.
 * @typedef {object} Status
 * @property {'starting' | 'running' | 'stopping'} state
 * @property {{ pid: number, version: string, nodeVersion: string, startedAt: string, rssBytes: number }} master
 * @property {{ name: string, entry: string, cwd: string, addresses: string[] }} app  `addresses`: URLs on which it listens
 * @property {'shared' | 'sticky' | 'round-robin'} dispatch
 * @property {boolean | null} isEven  whether connections are spread evenly over the workers that are idle; null: none listens yet, or the addresses of the clients decide
 * @property {number} desiredWorkers
 * @property {number} readyWorkers
 * @property {number} finishedWorkers  slots whose program has ended with exit code 0, and is not started again by itself
 * @property {string | null} nextRestartAt  by restart.cron
 * @property {Release} release  the one that was deployed last with success
 * @property {Rollout | null} rollout  that runs
 * @property {WorkerStatus[]} workers
 * @property {StandbyStatus} standby  workers beside those of the slots
 * @property {{ problem: string | null }} history  why it cannot be written at the moment
 * @property {number} lastEventId
 * @property {Health} health
 * @property {Notice[]} notices  what has gone wrong and nobody has acknowledged, newest first
 */

/**
 * Who serves, and what is wrong.
 * @typedef {object} Health
 * @property {'ok' | 'info' | 'drain' | 'warn' | 'bad' | 'idle'} tone
 * @property {string} text
 * @property {string} hint
 * @property {{ slots: number[], text: string, event: number, crashGroup: number | null }[]} reasons  what workers have died of, where it matters now; `text` is hostile
 */

/**
 * What has gone wrong while nobody looked: one stands for all of its kind.
 * @typedef {object} Notice
 * @property {number} id  that of its newest event
 * @property {'master-lost' | 'keeper-lost' | 'rollout-failed' | 'rolled-back' | 'upgrade-failed' | 'recycling-slowed' | 'history-degraded'} kind
 * @property {string} at
 * @property {string} firstAt  of the first that nobody has acknowledged
 * @property {number} count
 * @property {string} message
 * @property {string | null} endedAt  when it was over by itself
 */

/**
 * A worker, or a slot that has none at the moment.
 * @typedef {object} WorkerStatus
 * @property {number | null} id  null: none runs in this slot at the moment
 * @property {number} slot
 * @property {number | null} pid
 * @property {number | null} port  that only its slot has
 * @property {number} logSlot  whose log has its output; 0: that of standby workers
 * @property {string} state  `starting`, `ready`, `draining`, `stopping`, `unresponsive`, `backoff`, `held` or `finished`
 * @property {string} release
 * @property {string | null} startedAt
 * @property {string | null} readyAt
 * @property {string | null} retryAt  when the next try begins, of a slot without a worker
 * @property {{ at: string, worker: number, release: string, cause: string, code: number | null, succeeded: boolean } | null} finished  how the program of a slot has ended that is not started again by itself
 * @property {number} restarts  of its slot
 * @property {boolean} crashLooping
 * @property {boolean} drifted
 * @property {boolean} orphan  left behind by another master
 * @property {Record<string, any> & { at: string, rssBytes: number, cpuPercent: number } | null} vitals  of its last second
 */

/**
 * Workers that have loaded the app, and wait where it listens.
 * @typedef {object} StandbyStatus
 * @property {number} wanted
 * @property {number} ready
 * @property {string | null} problem  why none is kept of this release
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
 * @property {string | null} to  null: not prepared yet
 * @property {string} actor
 * @property {string | null} note
 * @property {string | null} reason  why it did not succeed
 * @property {string[]} warnings  what went wrong without making it fail
 * @property {{ name: 'beforeDeploy', state: 'due' | 'running' | 'passed' | 'failed' | 'ended', startedAt: string | null, finishedAt: string | null, output: string | null } | null} [hook]  what runs before anything is replaced
 * @property {string} startedAt
 * @property {string | null} finishedAt
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

import { z } from 'zod'
import { SCALE_ORDER } from '../config/orders.js'
import { DeckError } from '../errors.js'
import { operation } from './endpoint.js'
import { ACTOR, COUNT, listOf, NUMBER, RELEASE_NAME, TIME } from './fields.js'
import { NOTICE } from './notices.js'
import { checkMatch, IF_MATCH, tagOf } from './preconditions.js'
import { RELEASE } from './releases.js'
import { ROLLOUT, ROLLOUT_PROBLEMS, rolloutSummary } from './rollouts.js'
import { SAMPLE } from './vitals.js'

/** @typedef {z.infer<typeof WORKER>} Worker */
export const WORKER = z.strictObject({
  id: NUMBER.nullable().describe('that of node:cluster, never used again; null: the slot waits for its next worker'),
  slot: NUMBER,
  pid: NUMBER.nullable(),
  state: z.enum(['starting', 'ready', 'unresponsive', 'draining', 'stopping', 'queued', 'backoff', 'held', 'finished']),
  release: RELEASE_NAME,
  startedAt: TIME.nullable(),
  readyAt: TIME.nullable(),
  orphan: z.boolean().describe('another master has started it'),
  drifted: z.boolean().describe('the files of its release had changed when it was started'),
  logSlot: COUNT.describe('whose log has its output: that of its slot, or 0, that of standby workers, for one that was on standby'),
  port: z.int().nullable().describe('a port that only its slot has; null: it has none'),
  restarts: COUNT.describe('of its slot, after workers that died'),
  crashLooping: z.boolean(),
  retryAt: TIME.nullable().describe('when a slot without a worker gets its next one'),
  finished: z.strictObject({
    at: TIME,
    worker: NUMBER,
    release: RELEASE_NAME,
    cause: z.string(),
    code: z.int().nullable(),
    succeeded: z
      .boolean()
      .describe('it has done its work, by its exit code')
  }).nullable().describe('how the program of a slot has ended that is not started again by itself'),
  vitals: SAMPLE.extend({ requestsPerSecond: z.number().nullable() }).meta({ id: 'Vitals' }).nullable()
}).meta({ id: 'Worker' })

const STANDBY = z.strictObject({
  wanted: COUNT,
  ready: COUNT.describe('of those that have loaded the app, and wait where it listens'),
  problem: z.string().nullable().describe('why none is kept of this release'),
  workers: z.array(z.strictObject({
    id: NUMBER,
    pid: NUMBER.nullable(),
    state: z.enum(['starting', 'standby', 'draining', 'stopping']),
    release: RELEASE_NAME,
    startedAt: TIME,
    rssBytes: COUNT.nullable()
  }))
}).meta({ id: 'Standby' })

const REQUESTS = z.strictObject({
  items: z.array(z.strictObject({
    method: z.string(),
    path: z.string().describe('as its client sent it, without the query'),
    ageMs: COUNT
  })).describe('at most 100, oldest first'),
  total: COUNT.describe('how many there are')
}).meta({ id: 'OpenRequests' })

const HEALTH = z.strictObject({
  tone: z.enum(['ok', 'info', 'drain', 'warn', 'bad', 'idle']),
  text: z.string().meta({ description: 'who serves, and what is wrong', examples: ['3 of 4 workers serve; slot 2 keeps crashing'] }),
  hint: z.string(),
  reasons: z.array(z.strictObject({
    slots: z.array(NUMBER),
    text: z
      .string()
      .meta({ description: 'of the app: hostile', examples: ['TypeError: Cannot read properties of undefined (reading \'price\'), in total (price.js)'] }),
    event: NUMBER.describe('the newest of these exits, in the history'),
    crashGroup: NUMBER.nullable()
  })).describe('what workers have died of, where it matters now')
}).meta({ id: 'Health' })

const SCALE = z.strictObject({ desiredWorkers: COUNT }).meta({ id: 'Scale' })
const UPGRADE = z.strictObject({ startedAt: TIME, actor: ACTOR, note: z.string().nullable() })

/** @typedef {z.infer<typeof STATUS>} Status */
export const STATUS = z.strictObject({
  state: z.enum(['starting', 'running', 'stopping']),
  desiredWorkers: COUNT,
  readyWorkers: COUNT.describe('slots with a worker that is ready'),
  finishedWorkers: COUNT.describe('slots whose program has ended with exit code 0, and is not started again by itself (restart.policy)'),
  nextRestartAt: TIME.nullable().describe('by restart.cron'),
  release: RELEASE,
  rollout: ROLLOUT.nullable().describe('the one that is running'),
  upgrade: UPGRADE.nullable().describe('the change of masters that is under way'),
  workers: z.array(WORKER),
  standby: STANDBY.describe('workers beside those of the slots'),
  master: z.strictObject({ pid: NUMBER, version: z.string(), nodeVersion: z.string(), startedAt: TIME, rssBytes: COUNT }),
  app: z.strictObject({ name: z.string().describe('of this deck'), entry: z.string(), cwd: z.string(), addresses: z.array(z.string()) }),
  dispatch: z.enum(['shared', 'sticky', 'round-robin']),
  isEven: z.boolean()
    .nullable()
    .describe('whether connections are spread evenly over the workers that are idle; null: none listens yet, or the addresses of the clients decide'),
  history: z.strictObject({ problem: z.string().nullable().describe('why it cannot be written at the moment') }),
  lastEventId: COUNT,
  health: HEALTH,
  notices: z.array(NOTICE).describe('what has gone wrong and nobody has acknowledged, newest first')
}).meta({ id: 'Status' })

const UPGRADE_BODY = z.strictObject({
  execPath: z.string().startsWith('/').max(4096).optional().describe('the absolute path of a node binary'),
  note: z.string().max(500).optional().describe('a text of at most 500 characters')
}).meta({ examples: [{ note: 'clusterdeck 1.4' }] })

/**
 * The state of the cluster, and the wanted number of workers.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'snapshot' | 'status' | 'dispatch' | 'openRequests'> }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function clusterResources ({ deck }) {
  return {
    '/status': {
      GET: operation({
        name: 'getStatus',
        summary: 'The whole cluster',
        role: 'viewer',
        cli: 'clusterdeck status',
        answer: STATUS,
        handle () {
          const status = deck.status()
          return { body: { ...status, rollout: status.rollout && rolloutSummary(status.rollout) } }
        }
      })
    },

    '/workers': {
      GET: operation({
        name: 'listWorkers',
        summary: 'Workers, and slots that wait for one',
        role: 'viewer',
        answer: listOf(WORKER),
        handle: () => ({ body: { items: deck.snapshot().workers } })
      })
    },

    '/workers/:id': {
      GET: operation({
        name: 'getWorker',
        summary: 'One worker',
        role: 'viewer',
        problems: ['not-found'],
        answer: WORKER,
        handle: ({ id }) => ({ body: findWorker(id) })
      })
    },

    '/workers/:id/requests': {
      GET: operation({
        name: 'listWorkerRequests',
        summary: 'The HTTP requests that a worker has not answered yet',
        role: 'viewer',
        problems: ['not-found', 'not-possible'],
        answer: REQUESTS,
        handle: async ({ id }) => ({ body: await deck.openRequests(id) })
      })
    },

    '/workers/:id/restart': {
      POST: operation({
        name: 'restartWorker',
        summary: 'Replaces one worker, new before old',
        role: 'operator',
        status: 202,
        location: true,
        problems: ['not-found', ...ROLLOUT_PROBLEMS],
        answer: ROLLOUT,
        handle ({ id, auth }) {
          findWorker(id)
          const rollout = deck.dispatch({ type: 'restart-worker', worker: id, actor: auth.actor, client: auth.client })
          return { headers: { Location: `/api/v1/rollouts/${rollout.id}` }, body: rolloutSummary(rollout) }
        }
      })
    },

    '/workers/:id/kill': {
      POST: operation({
        name: 'killWorker',
        summary: 'Ends one worker by SIGKILL; the next one starts at once',
        role: 'operator',
        cli: 'clusterdeck kill 3',
        status: 202,
        problems: ['not-found', 'stopping'],
        answer: z.strictObject({ worker: NUMBER }),
        handle ({ id, auth }) {
          findWorker(id)
          deck.dispatch({ type: 'kill-worker', worker: id, actor: auth.actor })
          return { body: { worker: id } }
        }
      })
    },

    '/scale': {
      GET: operation({
        name: 'getScale',
        summary: 'How many workers should run',
        role: 'viewer',
        hasTag: true,
        answer: SCALE,
        handle: scaleView
      }),

      PUT: operation({
        name: 'setScale',
        summary: 'Sets how many workers should run',
        role: 'operator',
        cli: 'clusterdeck scale 4',
        body: SCALE_ORDER,
        headers: { 'If-Match': IF_MATCH.optional() },
        hasTag: true,
        problems: [...ROLLOUT_PROBLEMS, 'precondition-failed'],
        answer: SCALE,
        handle ({ req, body, auth }) {
          checkMatch(req, tagOf(deck.snapshot().desiredWorkers), { isRequired: false })
          deck.dispatch({ type: 'scale', workers: body.workers, actor: auth.actor })
          return scaleView()
        }
      })
    },

    '/upgrade': {
      POST: operation({
        name: 'upgradeMaster',
        summary: 'Changes to another master, and to another node, without a gap',
        description: '`status.upgrade` is null again when it is over; the history tells how it ended.',
        role: 'admin',
        // The body names a program to run.
        byToken: 'An upgrade',
        cli: 'clusterdeck upgrade',
        body: UPGRADE_BODY,
        status: 202,
        problems: [...ROLLOUT_PROBLEMS, 'not-possible'],
        answer: UPGRADE,
        handle ({ body: { execPath = null, note = null }, auth }) {
          return { body: deck.dispatch({ type: 'upgrade', execPath, note, actor: auth.actor }) }
        }
      })
    },

    '/stop': {
      POST: operation({
        name: 'stopMaster',
        summary: 'Drains all workers and ends the master',
        role: 'admin',
        cli: 'clusterdeck stop',
        status: 202,
        problems: ['stopping'],
        answer: z.strictObject({ state: z.literal('stopping') }),
        handle: ({ auth }) => ({ body: deck.dispatch({ type: 'stop', actor: auth.actor }) })
      })
    }
  }

  function scaleView () {
    const { desiredWorkers } = deck.snapshot()
    return { headers: { ETag: tagOf(desiredWorkers) }, body: { desiredWorkers } }
  }

  function findWorker (/** @type {number} */ id) {
    const worker = deck.snapshot().workers.find((one) => one.id === id)
    if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
    return worker
  }
}

import { z } from 'zod'
import { SCALE_ORDER } from '../config/orders.ts'
import { DeckError } from '../errors.ts'
import { created, operation, refuseLimited, type Resource } from './endpoint.ts'
import { COUNT, listOf, NUMBER, RELEASE_NAME, TIME } from './fields.ts'
import { checkMatch, IF_MATCH, lastOf, tagOf, type Past } from './preconditions.ts'
import { doerOf } from './roles.ts'
import { ROLLOUT, ROLLOUT_PROBLEMS } from '../rollouts/api.ts'
import { rolloutSummary, statusOf } from './summaries.ts'
import { UPGRADE, upgradeOperation } from '../handover/api.ts'
import { SAMPLE } from '../vitals/api.ts'
import { RELEASE, NOTICE, HOLDS, FINISHED, REASON, HISTORY_STATE } from './shapes.ts'
import type { Deck } from '../deck.ts'

export type Worker = z.infer<typeof WORKER>
export const WORKER = z.strictObject({
  id: NUMBER.nullable().describe(
    'the number of the worker: no other worker has it until the deck is stopped; null: the slot waits for its next worker'
  ),
  slot: NUMBER,
  pid: NUMBER.nullable(),
  state: z.enum(['starting', 'ready', 'unresponsive', 'draining', 'stopping', 'queued', 'backoff', 'held', 'finished']),
  release: RELEASE_NAME,
  runtime: z.enum(['node', 'other']).describe('what runs it; other: another program than Node, of which less is known'),
  startedAt: TIME.nullable(),
  readyAt: TIME.nullable(),
  socketNotes: z.array(z.string()).describe(
    'why this program does not share a socket with the other workers, or not all of it; empty: it does, or is a Node.js app'
  ),
  statusText: z.string().nullable().meta({
    description: 'what the program says of itself by sd_notify: escape it; null: nothing',
    examples: ['serving 12 clients']
  }),
  orphan: z.boolean().describe('an earlier master started it'),
  drifted: z.boolean().describe('files of its release changed between the deploy and its start'),
  driftedSince: TIME.nullable().describe('when the first of these files was written; null: none was, or nobody knows'),
  logSlot: COUNT.describe('the slot whose log has its output; 0: the log of standby workers'),
  port: z.int().nullable().describe('the port that only this slot uses; null: none'),
  restarts: COUNT.describe('how often its slot was restarted after a worker died'),
  crashLooping: z.boolean(),
  retryAt: TIME.nullable().describe('when a slot without a worker gets its next one'),
  holds: HOLDS.nullable().describe('what a draining worker still has; null: it does not drain, or has not told yet'),
  keptUntil: TIME.nullable().describe(
    'a replaced worker that has nothing but long-lived connections, transfers and sessions keeps them at most until then; null: nothing is kept'
  ),
  finished: FINISHED.nullable().describe('how the program ended, if it is not started again by itself; else null'),
  vitals: SAMPLE.extend({ requestsPerSecond: z.number().nullable() }).meta({ id: 'Vitals' }).nullable()
}).meta({ id: 'Worker' })

const STANDBY = z.strictObject({ wanted: COUNT,
  ready: COUNT.describe('how many have loaded the app and wait for a slot'),
  problem: z.string().nullable().describe('why this release has no standby workers'),
  workers: z.array(
    z.strictObject({ id: NUMBER, pid: NUMBER.nullable(), state: z.enum(['starting', 'standby', 'draining', 'stopping']),
      release: RELEASE_NAME, startedAt: TIME, rssBytes: COUNT.nullable() })
  ) }).meta({ id: 'Standby' })

export type OpenRequests = z.infer<typeof REQUESTS>
const REQUESTS = z.strictObject({
  items: z.array(
    z.strictObject({ method: z.string(), path: z.string().describe('the path as the client sent it, without the query'),
      ageMs: COUNT })
  ).describe('at most 100, oldest first'),
  total: COUNT.describe('how many there are')
}).meta({ id: 'OpenRequests' })

export const HEALTH = z.strictObject({ tone: z.enum(['ok', 'info', 'drain', 'warn', 'bad', 'idle']),
  text: z.string().meta({ description: 'how many workers serve, and what is wrong',
    examples: ['3 of 4 workers serve; slot 2 keeps crashing'] }), hint: z.string(),
  about: z.enum(['crashes']).nullable().describe(
    'what the hint is about, where that is a list of things to be looked at'
  ),
  reasons: z.array(REASON).describe(
    'why workers died, as far as it matters now; with no `slots`: open crashes of the release that runs, whose slots serve again'
  ),
  problems: COUNT.describe(
    'how many things somebody should look at: slots in trouble, open crashes of the release that runs, notices, failing jobs, a held rollout, a history that cannot be written'
  ) }).meta({ id: 'Health' })

const SCALE = z.strictObject({ desiredWorkers: COUNT }).meta({ id: 'Scale' })

export type Status = z.infer<typeof STATUS>
export const STATUS = z.strictObject({ state: z.enum(['starting', 'running', 'stopping']), desiredWorkers: COUNT,
  readyWorkers: COUNT.describe('slots with a worker that is ready'),
  finishedWorkers: COUNT.describe(
    'slots whose program ended with exit code 0 and is not started again (restart.policy)'
  ), nextRestartAt: TIME.nullable().describe('the next restart by restart.cron'), release: RELEASE,
  rollout: ROLLOUT.nullable().describe('the running rollout; null: none'),
  upgrade: UPGRADE.nullable().describe('the running change to another master; null: none'), workers: z.array(WORKER),
  standby: STANDBY.describe('workers that wait for a slot'),
  master: z.strictObject({ pid: NUMBER, version: z.string(), nodeVersion: z.string(), startedAt: TIME, rssBytes: COUNT,
    isShared: z.boolean().describe(
      'whether it is the master of other apps as well, so that `rssBytes` is for all of them'
    ) }),
  app: z.strictObject({ name: z.string().describe('the name of this deck'), entry: z.string(),
    program: z.string().nullable().meta({
      description: 'what is called by the entry, if it is no Node program; else null',
      examples: ['uvicorn app:app']
    }), cwd: z.string(), addresses: z.array(z.string()),
    ownSockets: z.string().nullable().describe(
      'why workers of this program cannot share its sockets on this machine, so that only one can serve; null: they share them'
    ) }), dispatch: z.enum(['shared', 'sticky']),
  stickyBy: z.string().nullable().meta({
    description: 'by what clients stay with a worker; null: dispatch is not sticky',
    examples: ['the header mcp-session-id']
  }),
  isEven: z.boolean().nullable().describe(
    'whether idle workers get equally many connections; null: no worker listens yet, or the addresses of the clients decide'
  ),
  limits: z.strictObject({ memoryBytes: COUNT.describe('limits.memoryBytes; 0: no limit'),
    cpus: z.number().describe('limits.cpus; 0: no limit'),
    problem: z.string().nullable().describe(
      'why workers run without these on this machine; null: they are kept, or there are none'
    ) }), history: HISTORY_STATE,
  secrets: z.strictObject({
    problem: z.string().nullable().describe(
      'why no worker can be started: the secrets of the app could not be read; null: it can'
    )
  }), lastEventId: COUNT, health: HEALTH,
  notices: z.array(NOTICE).describe('problems that nobody has acknowledged, newest first') }).meta({ id: 'Status' })

const MOVE_BODY = z.strictObject({
  path: z.string().startsWith('/').max(4096).describe(
    'the `path` that `POST /api/v1/host/adoptions` of the host has returned'
  ),
  secret: z.string().max(200).describe('the `secret` of the same answer of the host')
})

/** The state of the cluster, and the wanted number of workers. */
export function clusterResources (
  { deck, history }: { deck: Pick<Deck, 'snapshot' | 'status' | 'dispatch' | 'stored' | 'openRequests' | 'move'>,
    history: Past }
): Record<string, Resource> {
  return {
    '/status': {
      GET: operation({ name: 'getStatus', summary: 'Returns the state of the whole cluster', role: 'viewer',
        cli: 'clusterdeck status', answer: STATUS, handle: () => ({ body: statusOf(deck) }) })
    },

    '/workers': {
      GET: operation({ name: 'listWorkers', summary: 'Lists the workers, and the slots that wait for one',
        role: 'viewer', answer: listOf(WORKER), handle: () => ({ body: { items: deck.snapshot().workers } }) })
    },

    '/workers/:id': {
      GET: operation({ name: 'getWorker', summary: 'Returns one worker', role: 'viewer', problems: ['not-found'],
        answer: WORKER, handle: ({ id }) => ({ body: findWorker(id) }) })
    },

    '/workers/:id/requests': {
      GET: operation({ name: 'listWorkerRequests',
        summary: 'Lists the HTTP requests that a worker has not answered yet', role: 'viewer',
        problems: ['not-found', 'not-possible'], answer: REQUESTS,
        handle: async ({ id }) => ({ body: await deck.openRequests(id) }) })
    },

    '/workers/:id/restart': {
      POST: operation({ name: 'restartWorker', form: {},
        summary: 'Restarts one worker, new before old unless rollout.order is stop-first', role: 'operator',
        status: 202, location: true, problems: ['not-found', ...ROLLOUT_PROBLEMS], answer: ROLLOUT,
        handle ({ id, auth }) {
          findWorker(id)
          const rollout = deck.dispatch({ type: 'restart-worker', worker: id, actor: auth.actor, client: auth.client })
          return created(`/rollouts/${rollout.id}`, rolloutSummary(rollout))
        } })
    },

    '/workers/:id/kill': {
      POST: operation({ name: 'killWorker', form: {},
        summary: 'Kills one worker by SIGKILL: its open requests are lost, and the next one starts at once',
        role: 'operator', cli: 'clusterdeck kill {id}', status: 202, problems: ['not-found', 'stopping'],
        answer: z.strictObject({ worker: NUMBER }), handle ({ id, auth }) {
        findWorker(id)
        deck.dispatch({ type: 'kill-worker', worker: id, actor: auth.actor })
        return { body: { worker: id } }
      } })
    },

    '/workers/:id/end-connections': {
      POST: operation({ name: 'endWorkerConnections', form: {},
        summary:
          'Ends the long-lived connections that a replaced worker keeps, within drain.spreadMs, and then the worker',
        role: 'operator', cli: 'clusterdeck end-connections {id}', status: 202,
        problems: ['not-found', 'not-possible', 'stopping'], answer: WORKER, handle ({ id, auth }) {
        findWorker(id)
        deck.dispatch({ type: 'end-connections', worker: id, actor: auth.actor })
        return { body: findWorker(id) }
      } })
    },

    '/scale': {
      GET: operation({ name: 'getScale', summary: 'Returns how many workers should run', role: 'viewer', hasTag: true,
        answer: SCALE, handle: scaleView }),

      PUT: operation({ name: 'setScale', form: {}, summary: 'Sets how many workers should run', role: 'operator',
        cli: 'clusterdeck scale {workers}', body: SCALE_ORDER, headers: { 'If-Match': IF_MATCH.optional() },
        hasTag: true, problems: [...ROLLOUT_PROBLEMS, 'precondition-failed', 'not-stored'], answer: SCALE,
        async handle ({ seen, body, auth }) {
          const { desiredWorkers } = deck.snapshot()
          checkMatch(seen, desiredWorkers, { isRequired: false, change: () => changeOfScale(history, desiredWorkers) })
          deck.dispatch({ type: 'scale', workers: body.workers, actor: auth.actor })
          await deck.stored()
          return scaleView()
        } })
    },

    '/upgrade': {
      POST: upgradeOperation({ name: 'upgradeMaster',
        summary: 'Starts a new master, perhaps with another version of Node.js, without dropping a request',
        description: 'When it is over, `status.upgrade` is null again. The history tells how it ended.' }, (order) =>
        deck.dispatch({ type: 'upgrade', ...order }))
    },

    '/move': { POST: operation({
      name: 'moveToHost',
      summary: 'Moves the app into a host of the same user, without dropping a request',
      description:
        'Where that fails, this deck goes on. `GET /api/v1/host/adoptions/{id}` of the host tells how it ends.',
      role: 'admin',
      // Whoever is at the path gets the sockets, and the environment of the app.
      byToken: 'A move',
      cli: 'clusterdeck adopt /srv/shop',
      body: MOVE_BODY,
      status: 202,
      problems: [...ROLLOUT_PROBLEMS, 'not-possible', 'name-taken', 'invalid-config', 'entry-not-found',
        'data-dir-unusable'],
      answer: z.strictObject({ name: z.string().describe('what the host calls it') }),
      async handle ({ body, auth }) {
        refuseLimited(auth, 'moves an app')
        return { body: await deck.move({ ...body, actor: auth.actor }) }
      }
    }) },

    '/stop': {
      POST: operation({ name: 'stopMaster', summary: 'Drains all workers and stops the master', role: 'admin',
        cli: 'clusterdeck stop', status: 202, problems: ['stopping'],
        answer: z.strictObject({ state: z.literal('stopping') }),
        handle: ({ auth }) => ({ body: deck.dispatch({ type: 'stop', actor: auth.actor }) }) })
    }
  }

  function scaleView () {
    const { desiredWorkers } = deck.snapshot()
    return { headers: { ETag: tagOf(desiredWorkers) }, body: { desiredWorkers } }
  }

  function findWorker (id: number) {
    const worker = deck.snapshot().workers.find((one) => one.id === id)
    if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
    return worker
  }
}

export function changeOfScale (history: Past, now: number) {
  const event = lastOf(history, ['scale.changed'])
  const workers = now === 1 ? '1 worker' : `${now} workers`
  // The history may not have who it was, or nobody was it: a script can send any number.
  return Number(event?.detail?.to) === now
    ? `${doerOf(event)} has set it to ${workers} since you opened this`
    : `It is set to ${workers} now`
}

import { z } from 'zod'
import { DeckError } from '../errors.js'
import { ROLLOUT_ORDER } from '../config/orders.js'
import { STEERING } from '../config/steering.js'
import { operation } from './endpoint.js'
import { ACTOR, COUNT, NUMBER, pageOf, RELEASE_NAME, TIME } from './fields.js'
import { PAGE_QUERY } from './filters.js'
import { durationParam } from './input.js'
import { usualOf } from './usual-duration.js'

/** @typedef {import('../deck.js').RolloutView} RolloutView */

const MAX_WAIT_MS = 5 * 60_000

const FIGURES = z.strictObject({ workers: COUNT, requests: COUNT, errorRate: z.number().nullable(), p99Ms: z.number().nullable() })

const VERDICT = z.strictObject({
  at: TIME,
  passed: z.boolean().nullable().describe('null: there is too little to say'),
  isFinal: z.boolean(),
  message: z.string(),
  canary: FIGURES.describe('of the new workers'),
  baseline: FIGURES.describe('of the old workers that they are compared with')
})

const STEP = z.strictObject({
  slot: NUMBER,
  state: z.enum(['pending', 'stopping', 'starting', 'soaking', 'ready', 'draining', 'done', 'failed', 'reverting', 'reverted']),
  oldWorker: NUMBER.nullable(),
  newWorker: NUMBER.nullable(),
  from: RELEASE_NAME.describe('to which this slot rolls back'),
  isCanary: z.boolean(),
  startedAt: TIME.nullable(),
  readyAt: TIME.nullable().describe('its new worker was ready').optional(),
  promotedAt: TIME.nullable().describe('its new worker took the slot over, and the old one began to drain').optional(),
  drainedAt: TIME.nullable().describe('the old worker was gone').optional(),
  revertingAt: TIME.nullable().describe('since when the slot rolls back').optional(),
  finishedAt: TIME.nullable()
})

const USED_STRATEGY = z.strictObject({
  order: z.enum(['start-first', 'stop-first']).optional(),
  surge: NUMBER,
  minReadyMs: COUNT,
  canary: z.strictObject({ workers: COUNT, durationMs: COUNT }).nullable(),
  limits: z.strictObject({
    crashes: COUNT,
    errorRate: z.number(),
    p99Ratio: z.number(),
    slowerMs: COUNT.optional(),
    warmupMs: COUNT.optional(),
    minRequests: COUNT,
    readyTimeoutMs: COUNT.optional()
  }),
  progressDeadlineMs: COUNT,
  onFailure: z.enum(['rollback', 'hold']),
  guardMs: COUNT.optional()
})

/** @typedef {z.infer<typeof ROLLOUT>} Rollout */
/** One replacement of workers by new ones. */
export const ROLLOUT = z.strictObject({
  id: NUMBER,
  kind: z.enum(['restart', 'deploy', 'rollback']),
  state: z.enum(['preparing', 'canary', 'rolling', 'paused', 'held', 'rolling-back', 'succeeded', 'rolled-back', 'failed']),
  pausedIn: z.enum(['preparing', 'canary', 'rolling']).nullable().describe('the state in which it was paused or held'),
  done: z.boolean(),
  from: RELEASE_NAME,
  to: RELEASE_NAME.nullable().describe('null: it is not prepared yet'),
  actor: ACTOR,
  client: z.enum(['dashboard', 'cli', 'api']).nullable().describe('by what they asked for it; null: not over the admin port').optional(),
  note: z.string().nullable(),
  strategy: USED_STRATEGY,
  crashes: COUNT.describe('of workers of the new release'),
  verdicts: z.array(VERDICT).describe('oldest first, the last 50'),
  comparison: z.strictObject({ at: TIME, canary: FIGURES, baseline: FIGURES }).nullable().describe('how both sides did when the judge last looked').optional(),
  canaryEndsAt: TIME.nullable(),
  pausedAt: TIME.nullable().describe('since when it is paused or held').optional(),
  startedAt: TIME,
  finishedAt: TIME.nullable(),
  reason: z.string().nullable().describe('why it has not succeeded'),
  abortedBy: ACTOR.nullable().describe('who has aborted it; null: nobody'),
  warnings: z.array(z.string()),
  hook: z.strictObject({
    name: z.enum(['beforeDeploy']),
    state: z.enum(['due', 'running', 'passed', 'failed', 'ended']).describe('due: it waits for the end of a pause; ended: the deploy was called off'),
    startedAt: TIME.nullable(),
    finishedAt: TIME.nullable(),
    output: z.string().nullable().describe('the last of what it wrote, where it failed')
  }).nullable().describe('what runs before anything is replaced; null: nothing').optional(),
  progress: z.strictObject({ total: COUNT, replaced: COUNT }),
  steps: z.array(STEP)
}).meta({ id: 'Rollout' })

const MOMENT = z.strictObject({
  at: TIME,
  type: z.string().describe('of its event'),
  actor: ACTOR.nullable().describe('who did it; null: nobody'),
  message: z.string().nullable().describe('at most 500 characters'),
  passed: z.boolean().nullable().describe('of a verdict; null: it is none, or there was too little to say')
}).meta({ examples: [{ at: '2026-01-31T12:00:09.000Z', type: 'rollout.paused', actor: 'ada', message: 'paused by ada', passed: null }] })

/** With all details that are kept; null: not kept. */
const ROLLOUT_STORY = z.strictObject({
  ...ROLLOUT.shape,
  timeline: z.array(MOMENT).nullable().describe('what happened to it as a whole, oldest first, the last 100; what happened in each slot is in `steps`'),
  comparisons: z.array(z.strictObject({ at: TIME, canary: FIGURES, baseline: FIGURES }))
    .nullable()
    .describe('how both sides did whenever the judge looked, each since it began to compare; oldest first, at most 60 over the whole time'),
  usual: z.strictObject({ tookMs: COUNT, count: NUMBER })
    .nullable()
    .describe('median of the last ones of its kind that have succeeded before it, and how many these are, at most 20; null: fewer than three')
}).meta({ id: 'RolloutStory' })

/** Errors that refuse a rollout. @type {readonly import('../errors.js').ErrorCode[]} */
export const ROLLOUT_PROBLEMS = Object.freeze(['rollout-running', 'upgrade-running', 'starting', 'stopping', 'drifted'])

const ROLLOUT_BODY = z.strictObject({
  kind: z.enum(['restart', 'deploy', 'rollback']).describe('"restart", "deploy" or "rollback"'),
  ...ROLLOUT_ORDER
}).superRefine(({ kind, release, path, strategy }, context) => {
  const misplaced = {
    release: release !== undefined && kind !== 'rollback',
    path: path !== undefined && kind !== 'deploy',
    strategy: strategy !== undefined && kind === 'restart'
  }
  for (const [key, isMisplaced] of Object.entries(misplaced)) {
    if (isMisplaced) context.addIssue({ code: 'custom', path: [key], params: { expected: `nothing with kind "${kind}"` } })
  }
}).meta({
  examples: [{ kind: 'deploy', note: 'faster totals' }],
  allOf: [
    onlyWith('release', 'rollback'),
    onlyWith('path', 'deploy'),
    { anyOf: [{ properties: { kind: { enum: ['deploy', 'rollback'] } } }, { properties: { strategy: false } }] }
  ]
})

/** As JSON Schema. @param {string} field @param {string} kind */
function onlyWith (field, kind) {
  return { anyOf: [{ properties: { kind: { const: kind } } }, { properties: { [field]: false } }] }
}

/** @type {Readonly<Record<import('../config/steering.js').Steering, string>>} */
const STEERING_SUMMARIES = Object.freeze({
  pause: 'Begins no further step until it is resumed',
  resume: 'Goes on after a pause',
  abort: 'Takes back what it has replaced',
  promote: 'Ends the canary\'s trial as passed',
  retry: 'Tries a step again that has failed'
})

const ONE_QUERY = z.strictObject({ wait: durationParam(MAX_WAIT_MS) })

/**
 * @param {object} parts
 * @param {Pick<import('../deck.js').Deck, 'snapshot' | 'dispatch' | 'deploy' | 'events'>} parts.deck
 * @param {Pick<import('../../db/history.js').History, 'rollout' | 'rollouts' | 'rolloutDurations'>} parts.history
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} parts.timers
 * @param {AbortSignal} parts.closing  aborted when the admin port closes
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function rolloutResources ({ deck, history, timers, closing }) {
  return {
    '/rollouts': {
      GET: operation({
        name: 'listRollouts',
        summary: 'Rollouts, newest first',
        role: 'viewer',
        query: PAGE_QUERY,
        answer: pageOf(ROLLOUT),
        handle ({ query }) {
          const { items, next } = history.rollouts(query)
          return { body: { items: items.map(rolloutSummary), next } }
        }
      }),
      POST: operation({
        name: 'startRollout',
        summary: 'Restarts all, deploys or rolls back',
        description: '`release` is for a rollback, `path` for a deploy below `releases.root`. `strategy` is what `rollout.*` says, for this one.',
        role: 'operator',
        cli: { restart: 'clusterdeck restart', deploy: 'clusterdeck deploy', rollback: 'clusterdeck rollback' },
        body: ROLLOUT_BODY,
        status: 202,
        location: true,
        problems: [...ROLLOUT_PROBLEMS, 'entry-not-found', 'path-refused', 'release-gone', 'not-found', 'invalid-config'],
        answer: ROLLOUT,
        async handle ({ body, auth }) {
          const command = { ...body, actor: auth.actor, client: auth.client }
          const rollout = body.kind === 'deploy' ? await deck.deploy(command) : deck.dispatch({ type: 'rollout', ...command })
          return { headers: { Location: `/api/v1/rollouts/${rollout.id}` }, body: rolloutSummary(rollout) }
        }
      })
    },

    ...Object.fromEntries(STEERING.map((type) => [`/rollouts/:id/${type}`, { POST: steeringOperation(type) }])),

    '/rollouts/:id': {
      GET: operation({
        name: 'getRollout',
        summary: 'One rollout and what happened in it; with wait once it is done, or the time is up',
        role: 'viewer',
        query: ONE_QUERY,
        problems: ['not-found'],
        answer: ROLLOUT_STORY,
        async handle ({ id, query, req, res }) {
          const rollout = findRollout(id)
          if (query.wait === undefined || req.method === 'HEAD' || !isRunning(id)) return { body: storyOf(rollout) }
          return { body: storyOf(await untilDone(id, query.wait, res) ?? findRollout(id)) }
        }
      })
    }
  }

  /** @param {import('../config/steering.js').Steering} type @returns {import('./endpoint.js').Operation} */
  function steeringOperation (type) {
    return operation({
      name: `${type}Rollout`,
      summary: STEERING_SUMMARIES[type],
      role: 'operator',
      cli: `clusterdeck ${type}`,
      problems: ['not-found', 'rollout-ended', 'rollout-state', 'stopping'],
      answer: ROLLOUT,
      handle ({ id, auth }) {
        findRollout(id)
        return { body: rolloutSummary(deck.dispatch({ type, rollout: id, actor: auth.actor }) ?? findRollout(id)) }
      }
    })
  }

  // A rollout that an earlier master left never ends, so there is nothing to wait for.
  function isRunning (/** @type {number} */ id) {
    return deck.snapshot().rollout?.id === id
  }

  // The running one is read from the snapshot, which is complete even while the database fails.
  function findRollout (/** @type {number} */ id) {
    const running = deck.snapshot().rollout
    const rollout = running?.id === id ? running : history.rollout(id)
    if (!rollout) throw new DeckError('not-found', `Rollout ${id} does not exist or is no longer kept`)
    return rollout
  }

  function storyOf (/** @type {RolloutView} */ rollout) {
    return { ...rollout, timeline: rollout.timeline ?? null, comparisons: rollout.comparisons ?? null, usual: usualOf(history, rollout) }
  }

  /**
   * Resolves when the rollout ends, the time is up, the caller disconnects or the port closes.
   * @param {number} id @param {number} waitMs @param {import('node:http').ServerResponse} res
   * @returns {Promise<RolloutView | null>} the finished rollout, as told by its last event
   */
  function untilDone (id, waitMs, res) {
    return new Promise((resolve) => {
      const giveUp = () => settle(null)
      const timer = timers.setTimeout(giveUp, waitMs)
      const unsubscribe = deck.events.subscribe((event) => {
        if (event.rollout === id && event.detail?.done === true) settle(/** @type {RolloutView} */ (event.detail))
      })
      res.once('close', giveUp)
      closing.addEventListener('abort', giveUp)
      if (closing.aborted || res.destroyed) giveUp()

      function settle (/** @type {RolloutView | null} */ rollout) {
        timers.clearTimeout(timer)
        unsubscribe()
        res.off('close', giveUp)
        closing.removeEventListener('abort', giveUp)
        resolve(rollout)
      }
    })
  }
}

/** Without what is told of one alone. @param {RolloutView} rollout */
export function rolloutSummary ({ timeline, comparisons, ...rollout }) {
  return rollout
}

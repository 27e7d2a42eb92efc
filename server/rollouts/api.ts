import { z } from 'zod'
import { attempt, DeckError, type ErrorCode } from '../errors.ts'
import { COMMIT_ORDER, ROLLOUT_ORDER } from '../config/orders.ts'
import { STEERING, type Steering } from '../config/steering.ts'
import { created, operation, type Operation, type Resource } from '../api/endpoint.ts'
import { ACTOR, COUNT, NUMBER, pageOf, RELEASE_NAME, TIME } from '../api/fields.ts'
import { PAGE_QUERY } from '../api/filters.ts'
import { durationParam } from '../api/input.ts'
import { checkMatch, IF_MATCH, lastOf, tagOf, type Past } from '../api/preconditions.ts'
import { doerOf } from '../api/roles.ts'
import { rolloutSummary } from '../api/summaries.ts'
import { usualOf } from './api-usual-duration.ts'
import { COMPARISON, HOOK, MOMENT, PREVIEW, ROLLOUT_STATE, STEP, STRATEGY, VERDICT } from '../api/shapes.ts'
import type { ServerResponse } from 'node:http'
import type { RolloutView } from '../lifecycle/rollout/record.ts'
import type { Deck } from '../deck.ts'
import type { History } from '../../db/history.ts'

const MAX_WAIT_MS = 5 * 60_000

export type Rollout = z.infer<typeof ROLLOUT>
/** One replacement of workers by new ones. */
export const ROLLOUT = z.strictObject({ id: NUMBER, kind: z.enum(['restart', 'deploy', 'rollback']),
  state: ROLLOUT_STATE,
  pausedIn: z.enum(['preparing', 'canary', 'rolling']).nullable().describe('the state in which it was paused or held'),
  done: z.boolean(), from: RELEASE_NAME, to: RELEASE_NAME.nullable().describe('null: the release is not prepared yet'),
  actor: ACTOR,
  client: z.enum(['dashboard', 'cli', 'api', 'agent']).nullable().describe(
    'the program that started it; null: it was not started over the admin port'
  ).optional(), note: z.string().nullable(), strategy: STRATEGY, crashes: COUNT.describe('crashes of the new release'),
  verdicts: z.array(VERDICT).describe('oldest first, the last 50'),
  comparison: COMPARISON.nullable().describe('the last figures of both sides').optional(),
  canaryEndsAt: TIME.nullable(), pausedAt: TIME.nullable().describe('when it was paused or held').optional(),
  startedAt: TIME, finishedAt: TIME.nullable(),
  waitingFor: z.array(z.string()).nullable().describe(
    'apps of the same host that are rolled out first; null: it need not wait for its turn'
  ).optional(), reason: z.string().nullable().describe('why it did not succeed'),
  abortedBy: ACTOR.nullable().describe('who aborted it; null: nobody'), warnings: z.array(z.string()),
  hook: HOOK.nullable().describe('the command that runs before the first step; null: none').optional(),
  progress: z.strictObject({ total: COUNT, replaced: COUNT }), steps: z.array(STEP) }).meta({ id: 'Rollout' })

/** A rollout with all its details; null: not kept. */
export type RolloutInFull = z.infer<typeof ROLLOUT_STORY>
const ROLLOUT_STORY = z.strictObject({ ...ROLLOUT.shape,
  timeline: z.array(MOMENT).nullable().describe(
    'the story of the whole rollout: the last 100 entries, oldest first; `steps` has that of each slot'
  ),
  comparisons: z.array(COMPARISON).nullable().describe(
    'figures of both sides over time, each since the start of the comparison: at most 60, oldest first'
  ),
  usual: z.strictObject({ tookMs: COUNT, count: NUMBER }).nullable().describe(
    'the median time of the last 20 successful rollouts of its kind, and how many these are; null: fewer than three'
  ) }).meta({ id: 'RolloutStory' })

/** Errors that refuse a rollout. */
export const ROLLOUT_PROBLEMS: readonly ErrorCode[] = Object.freeze(['rollout-running', 'upgrade-running', 'starting',
  'stopping', 'drifted'])

const ROLLOUT_BODY = z.strictObject({
  kind: z.enum(['restart', 'deploy', 'rollback']).describe('"restart", "deploy" or "rollback"'),
  ...ROLLOUT_ORDER
}).superRefine(refuseMisplaced).meta({ examples: [{ kind: 'deploy', note: 'faster totals' }],
  allOf: [onlyWith('release', 'rollback'), onlyWith('path', 'deploy'), {
    anyOf: [{ properties: { kind: { enum: ['deploy', 'rollback'] } } }, { properties: { strategy: false } }]
  }] })

export const PREVIEW_ORDER = z.strictObject({ kind: z.enum(['deploy', 'rollback']).describe('"deploy" or "rollback"'),
  ...ROLLOUT_ORDER, git: COMMIT_ORDER.shape.git.optional(), guess: COMMIT_ORDER.shape.guess }).superRefine(
    refuseMisplaced
  ).meta({ examples: [{ kind: 'deploy' }, { kind: 'deploy', git: 'main' }],
    allOf: [
      ...[['release', 'rollback'], ['path', 'deploy'], ['git', 'deploy'], ['guess', 'deploy']].map(([field, kind]) =>
        onlyWith(field, kind)
      ),
      { anyOf: [{ properties: { path: false } }, { properties: { git: false } }] }
    ] })

function refuseMisplaced ({ kind, release, path, git, guess, strategy }: Record<string, unknown>,
  context: z.core.$RefinementCtx)
{
  if (path !== undefined && git !== undefined)
    context.addIssue({ code: 'custom', path: ['git'], params: { expected: 'nothing with path' } })
  const misplaced = { git: git !== undefined && kind !== 'deploy', guess: guess !== undefined && kind !== 'deploy',
    release: release !== undefined && kind !== 'rollback', path: path !== undefined && kind !== 'deploy',
    strategy: strategy !== undefined && kind === 'restart' }
  for (const [key, isMisplaced] of Object.entries(misplaced)) {
    if (isMisplaced)
      context.addIssue({ code: 'custom', path: [key], params: { expected: `nothing with kind "${kind}"` } })
  }
}

/** Allows a field only with one kind, as JSON Schema. */
function onlyWith (field: string, kind: string) {
  return { anyOf: [{ properties: { kind: { const: kind } } }, { properties: { [field]: false } }] }
}

const STEERING_SUMMARIES: Readonly<Record<Steering, string>> = Object.freeze({
  pause: 'Pauses a rollout: no further step starts until it is resumed',
  resume: 'Resumes a paused rollout',
  abort: 'Aborts a rollout and rolls back what it has replaced',
  promote: 'Accepts the canary at once, without waiting for the judge',
  retry: 'Retries the failed step of a held rollout'
})

/** of the command line, for the fields of a form */
export const STRATEGY_FLAGS =
  '--note {note} --surge {strategy.surge} --canary {strategy.canary.workers} --canary-time {strategy.canary.durationMs}ms --on-failure {strategy.onFailure}'

const ONE_QUERY = z.strictObject({ wait: durationParam(MAX_WAIT_MS) })

export function rolloutResources ({ deck, history, timers, closing }: {
  deck: Pick<Deck, 'snapshot' | 'dispatch' | 'deploy' | 'preview' | 'events'>,
  history: Pick<History, 'rollout' | 'rollouts' | 'rolloutDurations' | 'page'>,
  timers: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>,
  /** aborted when the admin port closes */
  closing: AbortSignal
}): Record<string, Resource> {
  return {
    '/rollouts': {
      GET: operation({ name: 'listRollouts', summary: 'Lists the rollouts, newest first', role: 'viewer',
        query: PAGE_QUERY, hasTag: true, answer: pageOf(ROLLOUT), handle ({ query }) {
        const { items, next } = history.rollouts(query)
        return { headers: { ETag: tagOf(lastRollout(deck, history)) },
          body: { items: items.map(rolloutSummary), next } }
      } }),
      POST: operation({ name: 'startRollout', form: {},
        summary: 'Starts a restart of all workers, a deploy or a rollback',
        description:
          '`release` is for a rollback, `path` for a deploy below `releases.root`. `strategy` replaces options of `rollout.*` for this rollout.',
        role: 'operator',
        cli: { restart: 'clusterdeck restart', deploy: `clusterdeck deploy ${STRATEGY_FLAGS}`,
          rollback: 'clusterdeck rollback {release} --note {note}' }, headers: { 'If-Match': IF_MATCH.optional() },
        body: ROLLOUT_BODY, status: 202, location: true,
        problems: [...ROLLOUT_PROBLEMS, 'precondition-failed', 'entry-not-found', 'path-refused', 'release-gone',
          'not-found', 'invalid-config', 'secrets-failed'], answer: ROLLOUT, async handle ({ seen, body, auth }) {
        checkNewest(seen)
        const command = { ...body, actor: auth.actor, client: auth.client }
        const rollout = body.kind === 'deploy'
          ? await deck.deploy(command)
          : deck.dispatch({ type: 'rollout', ...command })
        return created(`/rollouts/${rollout.id}`, rolloutSummary(rollout))
      } })
    },

    '/rollouts/preview': {
      POST: operation({ name: 'previewRollout',
        summary: 'Returns what a deploy or a rollback would do, and changes nothing',
        description:
          'It takes what `POST /rollouts` takes, and for a commit `git` and `guess` as `POST /releases` does: git fetches it where it has to, nothing is built. All reasons for which that would be refused are in `refusals`.',
        role: 'operator', cli: { deploy: 'clusterdeck deploy --dry-run', rollback: 'clusterdeck rollback --dry-run' },
        body: PREVIEW_ORDER, answer: PREVIEW,
        handle: async ({ body: { note, guess, ...wanted }, auth }) => ({
          body: await deck.preview({ ...wanted, isGuessAccepted: guess, actor: auth.actor })
        }) })
    },

    ...Object.fromEntries(STEERING.map((type) => [`/rollouts/:id/${type}`, { POST: steeringOperation(type) }])),

    '/rollouts/:id': {
      GET: operation({ name: 'getRollout',
        summary: 'Returns one rollout with its story; `wait` waits until it is done, or the time is up', role: 'viewer',
        query: ONE_QUERY, problems: ['not-found'], answer: ROLLOUT_STORY, async handle ({ id, query, req, res }) {
        const rollout = findRollout(id)
        // A rollout that an earlier master left never ends, so there is nothing to wait for.
        const isRunning = deck.snapshot().rollout?.id === id
        if (query.wait === undefined || req.method === 'HEAD' || !isRunning) return { body: storyOf(rollout) }
        return { body: storyOf(await untilDone(id, query.wait, res) ?? findRollout(id)) }
      } })
    }
  }

  /** Nobody can overrule another rollout that runs. */
  function checkNewest (seen: string | undefined) {
    const { rollout } = deck.snapshot()
    try {
      checkMatch(seen, lastRollout(deck, history), { isRequired: false, change: () => changeOfRollouts(history) })
    } catch (error) {
      if (!rollout) throw error
      throw new DeckError('rollout-running', changeOfRollouts(history), { details: { rollout: rollout.id } })
    }
  }

  function steeringOperation (type: Steering): Operation {
    return operation({ name: `${type}Rollout`, form: {}, summary: STEERING_SUMMARIES[type], role: 'operator',
      cli: `clusterdeck ${type}`, problems: ['not-found', 'rollout-ended', 'rollout-state', 'stopping'],
      answer: ROLLOUT, handle ({ id, auth }) {
      findRollout(id)
      return { body: rolloutSummary(deck.dispatch({ type, rollout: id, actor: auth.actor }) ?? findRollout(id)) }
    } })
  }

  // The running one is read from the snapshot, which is complete even while the database fails.
  function findRollout (id: number) {
    const running = deck.snapshot().rollout
    const rollout = running?.id === id ? running : history.rollout(id)
    if (!rollout) throw new DeckError('not-found', `Rollout ${id} does not exist or is no longer kept`)
    return rollout
  }

  function storyOf (rollout: RolloutView) {
    return { ...rollout, timeline: rollout.timeline ?? null, comparisons: rollout.comparisons ?? null,
      usual: usualOf(history, rollout) }
  }

  /**
   * Resolves when the rollout ends, the time is up, the caller disconnects or the port closes.
   * @returns the finished rollout, as told by its last event
   */
  function untilDone (id: number, waitMs: number, res: ServerResponse): Promise<RolloutView | null> {
    return new Promise((resolve) => {
      const giveUp = () => settle(null)
      const timer = timers.setTimeout(giveUp, waitMs)
      const unsubscribe = deck.events.subscribe((event) => {
        if (event.rollout === id && event.detail?.done === true) settle(event.detail as RolloutView)
      })
      res.once('close', giveUp)
      closing.addEventListener('abort', giveUp)
      if (closing.aborted || res.destroyed) giveUp()

      function settle (rollout: RolloutView | null) {
        timers.clearTimeout(timer)
        unsubscribe()
        res.off('close', giveUp)
        closing.removeEventListener('abort', giveUp)
        resolve(rollout)
      }
    })
  }
}

/** @returns the id of the newest rollout, whether it runs or is over; 0: none is known */
export function lastRollout (deck: Pick<Deck, 'snapshot'>, history: Pick<History, 'rollouts'>): number {
  const running = deck.snapshot().rollout
  if (running) return running.id
  // The cluster can be steered while the history is away.
  return attempt(() => history.rollouts({ limit: 1 }).items[0]?.id ?? 0, 0)
}

export function changeOfRollouts (history: Past) {
  const event = lastOf(history, ['rollout.started'])
  const what = event?.detail?.kind === undefined ? 'rollout' : event.detail.kind
  return `${doerOf(event)} has started a ${what}${
    event?.rollout ? ` (rollout ${event.rollout})` : ''
  } since you opened this`
}

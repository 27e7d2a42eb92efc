import { z } from 'zod'
import { holderOf, roleAllows, type Role } from '../api/roles.ts'
import { COMMIT_ORDER, ROLLOUT_ORDER, SCALE_ORDER } from '../config/orders.ts'
import { MAX_ID } from '../config/id.ts'
import { STEERING, type Steering } from '../config/steering.ts'
import { DeckError } from '../errors.ts'
import { previewFacts } from '../preview-facts.ts'
import { formatExactDuration } from '../../public/format.ts'
import { clip, headline, lines } from './texts.ts'
import type { Caller } from './caller.ts'
import type { Confirmations, Order } from './confirmations.ts'
import type { Tool } from './tools.ts'
import type { Preview, Setting } from '../api/shapes.ts'
import type { Status, Worker } from '../api/cluster.ts'
import type { Rollout } from '../api/rollouts.ts'
import type { CrashGroup } from '../api/crashes.ts'
import type { Notice } from '../api/notices.ts'

/**
 * Changes of an agent, in two calls: the first says what would be done and changes nothing, the second does exactly
 * that, if nothing has moved meanwhile.
 */
/** `facts`: what would be done, a line each */
type Seen = { order: Order, facts: string[], data?: unknown }
type Change = {
  role: Role,
  needs: readonly string[],
  /** arguments */
  takes: readonly string[],
  /** throws a DeckError where it would be refused */
  preview: (api: Caller, given: Given) => Promise<Seen>
}

const ID = z.int().min(1).max(MAX_ID)
const CRASH_ACTIONS = ['resolve', 'mute', 'reopen'] as const

const CHANGES: Readonly<Record<string, Change>> = Object.freeze({
  deploy: { role: 'operator', needs: [], takes: ['git', 'path', 'guess', 'note'], preview: (api, given) =>
    previewRollout(api, 'deploy', given) },
  rollback: { role: 'operator', needs: [], takes: ['release', 'note'], preview: (api, given) =>
    previewRollout(api, 'rollback', given) },
  restart: { role: 'operator', needs: [], takes: ['note'], preview: previewRestart },
  'restart-worker': { role: 'operator', needs: ['worker'], takes: [], preview: (api, { worker }) =>
    previewWorker(api, Number(worker), { action: 'restart',
      does: 'is replaced: its next one is ready before it drains' }) },
  'kill-worker': { role: 'operator', needs: ['worker'], takes: [], preview: (api, { worker }) =>
    previewWorker(api, Number(worker), { action: 'kill',
      does: 'is killed by SIGKILL: its open requests are lost, the next one starts at once' }) },
  scale: { role: 'operator', needs: ['workers'], takes: [], preview: previewScale },
  ...Object.fromEntries(
    STEERING.map((
      type
    ): [string, Change] => [`${type}-rollout`, { role: 'operator', needs: ['rollout'], takes: [],
      preview: (api, { rollout }) =>
        previewSteering(api, type, Number(rollout)) }]
    )
  ),
  ...Object.fromEntries(
    CRASH_ACTIONS.map((
      action
    ): [string, Change] => [`${action}-crash`, { role: 'operator', needs: ['crash'], takes: [],
      preview: (api, { crash }) =>
        previewCrash(api, action, Number(crash)) }]
    )
  ),
  'acknowledge-notice': { role: 'operator', needs: ['notice'], takes: [], preview: previewNotice },
  'set-options': { role: 'admin', needs: ['options'], takes: [], preview: previewOptions }
})

const FIELDS = {
  release: ROLLOUT_ORDER.release.describe('of a rollback: a release such as r12; default: the last good one'),
  git: COMMIT_ORDER.shape.git.optional().describe(
    'of a deploy: a branch, a tag or a commit; default: the code on disk'
  ),
  guess: COMMIT_ORDER.shape.guess,
  path: ROLLOUT_ORDER.path.describe('of a deploy: a folder below releases.root'),
  workers: SCALE_ORDER.shape.workers.optional().describe('how many workers should run'),
  worker: ID.optional().describe('the id of a worker'),
  rollout: ID.optional().describe('the id of a rollout'),
  crash: ID.optional().describe('the id of a crash group'),
  notice: ID.optional().describe('the id of a notice'),
  options: z.record(z.string(), z.unknown()).refine((options) => Object.keys(options).length > 0).optional().describe(
    'options by their names, such as {"drain.deadlineMs": 10000}'
  ),
  note: ROLLOUT_ORDER.note.describe('why, for the history')
}

type Given = z.infer<z.ZodObject<typeof FIELDS>>

export function changeTools (confirmations: Confirmations, role: Role): Record<string, Tool> {
  const allowed = Object.keys(CHANGES).filter((name) => roleAllows(role, CHANGES[name].role))
  const minutes = Math.round(confirmations.validMs / 60_000)

  return {
    preview_change: { title: 'Preview a change',
      description:
        'Says what a change would do, and changes nothing. The answer has a confirmation for "confirm_change". Show the preview to the person you work for first.',
      role: 'operator', takesJson: true,
      input: z.strictObject({ change: z.enum(allowed.length > 0 ? allowed : ['none']), ...FIELDS }),
      async run (api, { change, ...rest }: Given & { change: string }, auth) {
        checkFields(change, rest)
        const { order, facts, data } = await CHANGES[change].preview(api, rest)
        const confirmation = confirmations.keep({ order, holder: holderOf(auth), base: api.base })
        return {
          text: `${
            lines([`PREVIEW of ${order.what}. Nothing has been changed.`, ...facts])
          }\n\nTo do it: show this to the person you work for, and if they agree call confirm_change with confirmation "${confirmation}" within ${minutes} minutes.`,
          data: { confirmation, ...(data !== undefined && { preview: data }) }
        }
      } },

    confirm_change: { title: 'Do a previewed change',
      description:
        'Does exactly what preview_change has shown, once. It is refused if somebody has changed the same thing meanwhile. Only call it after a person has agreed to the preview.',
      role: 'operator', isChange: true, isOfPort: true,
      input: z.strictObject({ confirmation: z.string().max(100).describe('as preview_change has returned it') }),
      async run (api, { confirmation }: { confirmation: string }, auth) {
        const found = confirmations.find(confirmation, holderOf(auth))
        if (!found)
          throw new DeckError('not-possible',
            'confirmation: expected one that preview_change has returned to you in the last minutes, received another: preview the change again')
        const isFirst = found.done === null
        const { what, path, seen, ...order } = found.order
        if (isFirst && seen &&
          fixedOf(
              await api.change<Preview>({ method: 'POST', path: `${found.base}/rollouts/preview`, body: seen.body })
            ) !== seen.fixed)
        {
          throw new DeckError('precondition-failed',
            `${what}: expected code, configuration and running release as preview_change has shown them, received others: preview the change again`)
        }
        found.done ??= api.change({ ...order, path: found.base + path })
        const body = await found.done
        return { text: `${isFirst ? 'Done' : 'Done already, and not again'}: ${what}. ${followText(body)}`.trim(),
          data: shortBody(body) }
      } }
  }
}

/** @throws {DeckError} invalid-argument */
function checkFields (change: string, given: Record<string, unknown>) {
  const { needs, takes } = CHANGES[change]
  const missing = needs.find((name) => given[name] === undefined)
  if (missing)
    throw new DeckError('invalid-argument', `${missing}: expected with the change ${change}, received nothing`)
  const misplaced = Object.keys(given).find((name) =>
    given[name] !== undefined && !needs.includes(name) && !takes.includes(name)
  )
  if (misplaced)
    throw new DeckError('invalid-argument',
      `${misplaced}: expected nothing with the change ${change}${
        [...needs, ...takes].length > 0 ? `, which takes ${[...needs, ...takes].join(', ')}` : ''
      }`)
}

function followText (body: unknown) {
  const { progress, id } = Object(body)
  return progress && id ? `It is rollout ${id}: follow it by the tool rollouts with id ${id}.` : ''
}

/** @returns without what other tools tell */
function shortBody (body: unknown): unknown {
  const { steps, verdicts, strategy, releases, items, ...rest } = Object(body)
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
}

async function previewRollout (api: Caller, kind: 'deploy' | 'rollback', { note, ...wanted }: Given): Promise<Seen> {
  const tag = await api.tag('/rollouts')
  const seen = await api.change<Preview>({ method: 'POST', path: '/rollouts/preview', body: { kind, ...wanted } })
  if (seen.refusals.length > 0)
    throw new DeckError('not-possible',
      `This ${kind} would be refused: ${seen.refusals.map(({ message }) => message).join('; ')}`)
  const { git: named, guess, ...rest } = wanted
  // A branch may lead to another commit by then: what is confirmed is the one that was shown.
  const git = named === undefined ? undefined : seen.release?.git?.commit ?? named
  const what = `a ${kind}${seen.release ? ` to ${seen.release.id}` : ''} from ${seen.from}`
  const order: Omit<Order, 'what'> = git === undefined
    // A rollback goes where the preview said, also if another release is the last good one by then.
    ? { method: 'POST', path: '/rollouts',
      body: { kind, ...rest, ...(kind === 'rollback' && seen.release && { release: seen.release.id }),
        ...(note !== undefined && { note }) }, headers: { 'if-match': tag } }
    : { method: 'POST', path: '/releases',
      body: { git, guess: guess ?? seen.build?.isGuess ?? false, ...(note !== undefined && { note }) }, headers: {} }
  return {
    order: { what, ...order,
      seen: { body: { kind, ...wanted, ...(git !== undefined && { git }) }, fixed: fixedOf(seen) } },
    facts: [...previewFacts(seen, formatExactDuration).map(({ name, value }) => `${name}: ${value}`),
      ...seen.warnings.map((warning) => `Warning: ${warning}`)]
  }
}

/** @returns what of it may not change until it is confirmed */
function fixedOf ({ from, release, build, changed, files, options }: Preview): string {
  return JSON.stringify([from, release && { ...release, git: release.git && { ...release.git, branch: null } }, build,
    changed, files, options])
}

async function previewRestart (api: Caller, { note }: Given): Promise<Seen> {
  const tag = await api.tag('/rollouts')
  const { release, desiredWorkers, rollout } = await api.get<Status>('/status')
  if (rollout) throw new DeckError('rollout-running', `rollout ${rollout.id} (${rollout.kind}) is running`)
  return {
    order: { what: `a restart of all workers of ${release.id}`, method: 'POST', path: '/rollouts',
      body: { kind: 'restart', ...(note !== undefined && { note }) }, headers: { 'if-match': tag } },
    facts: [
      `All ${desiredWorkers} workers are replaced by new ones of the same release, slot by slot; each new one is ready before its old one drains, unless rollout.order is stop-first.`
    ]
  }
}

async function previewWorker (api: Caller, id: number,
  { action, does }: { action: string, does: string }): Promise<Seen>
{
  const { slot, state, release, pid } = await api.get<Worker>(`/workers/${id}`)
  return { order: { what: `${action} of worker ${id}`, method: 'POST', path: `/workers/${id}/${action}`, headers: {} },
    facts: [`Worker ${id} (slot ${slot}, ${state}, ${release}, pid ${pid}) ${does}.`] }
}

async function previewScale (api: Caller, { workers }: Given): Promise<Seen> {
  const tag = await api.tag('/scale')
  const { desiredWorkers } = await api.get<{ desiredWorkers: number }>('/scale')
  return {
    order: { what: `scaling to ${workers} workers`, method: 'PUT', path: '/scale', body: { workers },
      headers: { 'if-match': tag } },
    facts: [`From ${desiredWorkers} to ${workers} workers; those that are too many drain first.`]
  }
}

async function previewSteering (api: Caller, type: Steering, id: number): Promise<Seen> {
  const { kind, state, from, to, progress, done } = await api.get<Rollout>(`/rollouts/${id}`)
  if (done) throw new DeckError('rollout-ended', `Rollout ${id} has ended: ${state}`)
  return { order: { what: `${type} of rollout ${id}`, method: 'POST', path: `/rollouts/${id}/${type}`, headers: {} },
    facts: [
      `Rollout ${id}: ${kind} from ${from} to ${
        to ?? 'a release that is being prepared'
      }, ${state}, ${progress.replaced} of ${progress.total} slots replaced.`
    ] }
}

async function previewCrash (api: Caller, action: string, id: number): Promise<Seen> {
  const group = await api.get<CrashGroup>(`/crashes/${id}`)
  return {
    order: { what: `${action} of crash group ${id}`, method: 'POST', path: `/crashes/${id}/${action}`, headers: {} },
    facts: [`Crash group ${id} (${group.state}, ${group.count} crashes): ${headline(group)}`]
  }
}

async function previewNotice (api: Caller, { notice }: Given): Promise<Seen> {
  const { items } = await api.get<{ items: Notice[] }>('/notices')
  const found = items.find(({ id }) => id === notice)
  if (!found) throw new DeckError('not-found', `Notice ${notice} does not exist, or is acknowledged already`)
  return {
    order: { what: `acknowledging notice ${notice}`, method: 'POST', path: `/notices/${notice}/acknowledge`,
      headers: {} },
    facts: [clip(found.message)]
  }
}

async function previewOptions (api: Caller, { options = {} }: Given): Promise<Seen> {
  const tag = await api.tag('/config')
  const { items } = await api.get<{ items: Setting[] }>('/config')
  const facts = Object.entries(options).map(([name, value]) => {
    const known = items.find((each) => each.name === name)
    if (!known)
      throw new DeckError('unknown-option',
        `There is no option ${JSON.stringify(name.slice(0, 80))}: see the tool settings`)
    if (known.takesEffect !== 'now')
      throw new DeckError('not-possible',
        `${name} takes effect at the next ${known.takesEffect}: it is changed in the config file`)
    return `${name}: ${known.isSecret ? 'a secret' : JSON.stringify(known.value)} → ${
      known.isSecret ? 'another one' : JSON.stringify(value)
    } (${known.expected})`
  })
  return {
    order: { what: `changing ${Object.keys(options).join(', ')}`, method: 'PATCH', path: '/config', body: options,
      headers: { 'if-match': tag } },
    facts: [...facts, 'It counts until the master starts again; the config file stays as it is.']
  }
}

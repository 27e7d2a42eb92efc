import { setTimeout as wait } from 'node:timers/promises'
import { formatExactDuration } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { checkedAction, orderFor, type Action } from '../cli/actions.ts'
import { settleFleetCrash } from './cli-hosts.ts'
import { connectionFacts, fleetTable } from './cli-table.ts'
import { formatTable, jsonText } from '../cli/output.ts'
import { progressOf, progressText } from './progress.ts'
import { pushFolder } from '../cli/push.ts'
import { countFrom } from '../rollouts/cli.ts'
import { misuse, optionalDuration } from '../cli/usage.ts'
import type { Context } from '../cli/commands.ts'
import type { Fleet, FleetRollout, FleetTurn } from './api-answers.ts'
import type { FleetPreview } from './api-preview.ts'

const POLL_MS = 500
const LOST_AFTER_POLLS = 6
const ENDED: readonly FleetRollout['state'][] = ['succeeded', 'failed', 'rolled-back', 'held']

/** `options`: beside those of all commands, in camel case */
type FleetAction = Action & { options: readonly string[] }

const START_OPTIONS = ['batch', 'canary', 'deadline', 'dryRun', 'note', 'onFailure', 'only', 'order', 'pause', 'wait']
const STEER_OPTIONS = ['wait']

/** Those that take a word take a release, a member or a crash group; the others are about the whole fleet. */
const ACTIONS: Readonly<Record<string, FleetAction>> = Object.freeze({
  status: { run: printFleet, words: 0, options: [] },
  deploy: { run: (context) => startRollout('deploy', context), words: 0,
    options: [...START_OPTIONS, 'path', 'push', 'pushAlso'] },
  restart: { run: (context) => startRollout('restart', context), words: 0, options: START_OPTIONS },
  rollback: { run: (context, release) => startRollout('rollback', context, release), options: START_OPTIONS },
  pause: { run: (context) => steerRollout('pause', context), words: 0, options: STEER_OPTIONS },
  resume: { run: (context) => steerRollout('resume', context), words: 0, options: STEER_OPTIONS },
  abort: { run: (context) => steerRollout('abort', context), words: 0, options: STEER_OPTIONS },
  forget: {
    run: orderFor(checkedHost, (api, host) => api.delete(`/fleet/members/${encodeURIComponent(host)}`), (_, host) =>
      `${host} is forgotten; if it comes back, it is listed again`),
    options: []
  },
  resolve: { run: settleFleetCrash('resolve'), options: [] },
  mute: { run: settleFleetCrash('mute'), options: [] },
  reopen: { run: settleFleetCrash('reopen'), options: [] }
})

export async function fleetCommand (context: Context, name: string = 'status', ...subject: string[]) {
  const action = checkedAction('fleet', ACTIONS, [name, ...subject],
    (member) =>
      name === 'restart' || name === 'deploy' ? `; for one member: clusterdeck ${name} --member ${member}` : '')
  const other = Object.keys(context.options).find((option) =>
    actionsWith(option).length > 0 && !action.options.includes(option)
  )
  if (other)
    throw new DeckError('usage',
      `fleet ${name}: expected without ${flagOf(other)}, which is for ${actionsWith(other).join(', ')}`)
  await action.run(context, ...subject)
}

/** `option`: in camel case */
function flagOf (option: string) {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

function actionsWith (option: string) {
  return Object.keys(ACTIONS).filter((action) => ACTIONS[action].options.includes(option))
}

async function printFleet ({ api, answer }: Context) {
  const found = await api.get<Fleet>('/fleet')
  answer(found, () => statusText(found))
}

/** @throws {DeckError} usage */
function checkedHost (member?: string): string {
  if (member !== undefined) return member
  throw misuse('fleet forget', 'the name of a host', 'nothing')
}

async function startRollout (kind: 'restart' | 'deploy' | 'rollback', context: Context, release?: string) {
  const { path, push: folder, note, batch, pause, deadline, order, canary, onFailure, only } = context.options
  if (folder !== undefined && path !== undefined) throw misuse('fleet deploy', 'either --push or --path', 'both')
  if (context.options.pushAlso !== undefined && folder === undefined)
    throw misuse('fleet deploy --push-also', '--push <folder> as well')
  if (context.options.dryRun && folder !== undefined)
    throw new DeckError('usage', 'fleet deploy --dry-run: expected without --push, which sends the folder')
  const wanted = { kind, release, path, digest: folder === undefined ? undefined : await pushFolder(folder, context),
    note, order, canary, onFailure, batch: countFrom(batch), pauseMs: optionalDuration('--pause', pause),
    deadlineMs: optionalDuration('--deadline', deadline), only: only && labelsOf(only) }
  if (context.options.dryRun) return await printPreview(wanted, context)
  const rollout = await context.api.post<FleetRollout>('/fleet/rollout', wanted)
  if (rollout.absent.length > 0) context.tell(`skipped (offline): ${rollout.absent.join(', ')}`)
  await reportOn(rollout, context)
}

/** Prints what a rollout would do, and fails as that would. */
async function printPreview (wanted: object, { api, answer }: Context) {
  const preview: FleetPreview = await api.post('/fleet/rollout/preview', wanted)
  answer(preview, () => previewText(preview))
  if (preview.refusals.length > 0)
    throw new DeckError('not-possible', `the ${preview.kind} would be refused: ${preview.refusals.join('; ')}`)
}

function previewText ({ kind, batches, leftOut }: FleetPreview) {
  const rows = batches.flatMap((batch, index) =>
    batch.map(({ member, release, becomes, problem }) => [index + 1, member, release, problem ?? becomes])
  )
  return [`${kind}: a dry run, nothing was changed`,
    ...leftOut.map(({ member, reason }) => oneLine(`left out: ${member} (${reason})`)),
    ...(rows.length > 0 ? [formatTable(['BATCH', 'HOST', 'NOW', 'BECOMES'], rows, { right: [0] })] : [])].join('\n')
}

async function steerRollout (order: 'pause' | 'resume' | 'abort', context: Context) {
  await reportOn(await context.api.post(`/fleet/rollout/${order}`), context, GOOD[order])
}

/** The states that are a success. */
const GOOD: Readonly<Record<'pause' | 'resume' | 'abort', FleetRollout['state'][]>> = Object.freeze({
  pause: ['paused', 'succeeded'],
  resume: ['succeeded'],
  abort: ['rolled-back']
})

async function reportOn (rollout: FleetRollout, context: Context, good: FleetRollout['state'][] = ['succeeded']) {
  const { options, answer, print } = context
  if (!options.wait) return answer(rollout, () => rolloutText(rollout))
  const ended = await followRollout(rollout, context, new Set([...ENDED, ...good]))
  if (options.json) print(jsonText(ended))
  if (!good.includes(ended.state))
    throw new DeckError('rollout-failed',
      `rollout ${ended.id} of the fleet (${ended.kind}) is ${ended.state}: ${ended.reason ?? 'no reason was given'}`)
  if (!options.json) print(rolloutText(ended))
}

/** @returns the rollout once it is in one of these states and no member is in its turn */
async function followRollout (rollout: FleetRollout, { api, tell, timeoutMs }: Context,
  ends: Set<FleetRollout['state']>): Promise<FleetRollout>
{
  const told: Map<string, string> = new Map()
  const until = performance.now() + timeoutMs
  let missed = 0
  let silent: Set<string> = new Set()
  for (let now = rollout;; now = await readRollout() ?? now) {
    if (now.uid !== rollout.uid)
      throw new DeckError('rollout-ended', `rollout ${now.id} of the fleet has replaced rollout ${rollout.id}`)
    for (const [member, turn] of Object.entries(now.turns)) {
      if (turn.state !== 'pending' && told.get(member) !== turn.state) tell(turnText(member, turn))
      told.set(member, turn.state)
    }
    const inTurn = Object.entries(now.turns).filter(([, { state }]) => state === 'running' || state === 'reverting')
      .map(([member]) => member)
    // A held rollout does not wait for a member that is silent in its turn, and may never be back.
    const isAtRest = inTurn.every((member) => now.state === 'held' && silent.has(member))
    if (ends.has(now.state) && isAtRest) return now
    if (performance.now() > until)
      throw new DeckError('timed-out', `rollout ${now.id} of the fleet is still ${now.state}`)
    await wait(POLL_MS)
  }

  /** Null: NATS does not have it at the moment */
  async function readRollout (): Promise<FleetRollout | null> {
    const { rollout: found, nats, members }: Fleet = await api.get('/fleet')
    silent = new Set(members.filter(({ isSilent }) => nats.isConnected && isSilent).map(({ member }) => member))
    missed = found === null && nats.isConnected ? missed + 1 : 0
    if (missed === LOST_AFTER_POLLS) {
      const rest = 'Hosts that are deploying will finish; no others will start'
      throw new DeckError('rollout-failed',
        `rollout ${rollout.id} of the fleet is lost: NATS no longer has it. ${rest}`)
    }
    return found
  }
}

function turnText (member: string, { state, startedAt, finishedAt, from, to, reason, isLate }: FleetTurn) {
  // A turn that was reverted has no duration of its own: its way back began when the others were done.
  const took = startedAt && finishedAt && state !== 'reverted'
    ? ` in ${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))}`
    : ''
  const where = state === 'succeeded' && to ? ` (${from} to ${to})` : ''
  return oneLine(`${member}: ${state}${where}${took}${isLate ? ', late' : ''}${reason ? `: ${reason}` : ''}`)
}

function rolloutText ({ id, kind, state, turns, reason }: FleetRollout) {
  // A member whose guard rolled back after the end is not in the rollout's own reason.
  const [member, failed] = Object.entries(turns).find(([, turn]) => turn.state === 'failed') ?? []
  const why = reason ?? (failed ? `${member}: ${failed.reason}` : null)
  const progress = progressText(state, progressOf({ state, turns }))
  return oneLine(`rollout ${id} of the fleet (${kind}) ${state}: ${progress}${why ? `; ${why}` : ''}`)
}

function statusText ({ name, app, member, nats, problem, outbox, members, rollout }: Fleet) {
  const facts = [`fleet     ${oneLine(name)}, ${oneLine(app)}, this is ${member}`,
    ...connectionFacts({ nats, problem }),
    ...(Number(outbox.waiting) > 0 || (nats.isConnected && outbox.problem) ? [`outbox    ${outboxText(outbox)}`] : []),
    ...(rollout ? [`rollout   ${rolloutText(rollout)}`] : [])]
  const table = fleetTable(members.map((member) => ({ host: member, app: member })), { hasApps: false })
  return `${facts.join('\n')}\n\n${table}`
}

function outboxText ({ waiting, problem }: Fleet['outbox']) {
  const counted = `${waiting ?? 'unknown how many'} ${waiting === 1 ? 'event waits' : 'events wait'}`
  return problem ? `${counted}: ${oneLine(problem)}` : counted
}

/** `text`: `zone=a,disk=ssd` @throws {DeckError} usage */
function labelsOf (text: string): Record<string, string> {
  const pairs = text.split(',').map((pair) => /^([\w.-]{1,60})=(.*)$/.exec(pair)?.slice(1) ?? [])
  if (pairs.some(([label]) => label === undefined))
    throw misuse('--only', 'labels such as zone=a', JSON.stringify(text))
  const labels = Object.fromEntries(pairs)
  if (Object.keys(labels).length < pairs.length) throw misuse('--only', 'one value of each label', JSON.stringify(text))
  return labels
}

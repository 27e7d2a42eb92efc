import { setTimeout as wait } from 'node:timers/promises'
import { formatExactDuration } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { fleetCrashes, settleFleetCrash } from './crashes.ts'
import { fleetHistory } from './history.ts'
import { fleetLogs } from './logs.ts'
import { COLUMNS, connectionFacts, rowOf } from './fleet-table.ts'
import { formatTable, jsonText } from './output.ts'
import { pushFolder } from './push.ts'
import { countFrom } from './rollouts.ts'
import { checkedWord, misuse, optionalDuration } from './usage.ts'
import type { Context } from './commands.ts'
import type { Fleet, FleetRollout, FleetTurn } from '../api/fleet-answers.ts'
import type { FleetPreview } from '../api/fleet-preview.ts'

const POLL_MS = 500
const LOST_AFTER_POLLS = 6
const ENDED: readonly FleetRollout['state'][] = ['succeeded', 'failed', 'rolled-back', 'held']

const ACTIONS: Readonly<Record<string, (context: Context, subject?: string) => Promise<void>>> = Object.freeze({
  status: printFleet,
  deploy: (context) => startRollout('deploy', context),
  restart: (context) => startRollout('restart', context),
  rollback: (context, release) => startRollout('rollback', context, release),
  pause: (context) => steerRollout('pause', context),
  resume: (context) => steerRollout('resume', context),
  abort: (context) => steerRollout('abort', context),
  history: fleetHistory,
  logs: fleetLogs,
  forget: forgetHost,
  crashes: fleetCrashes,
  resolve: settleFleetCrash('resolve'),
  mute: settleFleetCrash('mute'),
  reopen: settleFleetCrash('reopen')
})

const START_OPTIONS = ['batch', 'canary', 'deadline', 'dryRun', 'note', 'onFailure', 'only', 'order', 'pause', 'wait']
const STEER_OPTIONS = ['wait']
/** The options of each action, beside those of all commands. */
const OPTIONS: Readonly<Record<string, string[]>> = Object.freeze({ status: [],
  deploy: [...START_OPTIONS, 'path', 'push', 'pushAlso'], restart: START_OPTIONS, rollback: START_OPTIONS,
  pause: STEER_OPTIONS, resume: STEER_OPTIONS, abort: STEER_OPTIONS,
  history: ['cause', 'limit', 'q', 'since', 'type', 'until'],
  logs: ['lines', 'q', 'level', 'stream', 'since', 'until', 'around'], forget: [], crashes: [], resolve: [], mute: [],
  reopen: [] })
const ALL_OPTIONS = new Set(Object.values(OPTIONS).flat())

/** These take a release, a member or a crash group; the others are about the whole fleet. */
const WITH_SUBJECT = new Set(['rollback', 'history', 'logs', 'forget', 'resolve', 'mute', 'reopen'])

export async function fleetCommand (context: Context, action: string = 'status', subject?: string) {
  checkedWord('fleet', Object.keys(ACTIONS), action)
  if (subject !== undefined && !WITH_SUBJECT.has(action)) {
    const hint = action === 'restart' || action === 'deploy'
      ? `; for one member: clusterdeck ${action} --member ${subject}`
      : ''
    throw misuse(`fleet ${action}`, 'nothing more', `${JSON.stringify(subject)}${hint}`)
  }
  const other = Object.keys(context.options).find((name) => ALL_OPTIONS.has(name) && !OPTIONS[action].includes(name))
  if (other)
    throw new DeckError('usage',
      `fleet ${action}: expected without ${flagOf(other)}, which is for ${actionsWith(other).join(', ')}`)
  await ACTIONS[action](context, subject)
}

/** `option`: in camel case */
function flagOf (option: string) {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

function actionsWith (option: string) {
  return Object.keys(OPTIONS).filter((action) => OPTIONS[action].includes(option))
}

async function printFleet ({ api, answer }: Context) {
  const found = await api.get<Fleet>('/fleet')
  answer(found, () => statusText(found))
}

async function forgetHost ({ api, answer }: Context, member?: string) {
  if (member === undefined) throw misuse('fleet forget', 'the name of a host', 'nothing')
  const body = await api.delete(`/fleet/members/${encodeURIComponent(member)}`)
  answer(body, () => `${member} is forgotten; if it comes back, it is listed again`)
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
  const all = Object.entries(turns)
  const done = all.filter(([, turn]) => turn.state === 'succeeded').length
  // A member whose guard rolled back after the end is not in the rollout's own reason.
  const [member, failed] = all.find(([, turn]) => turn.state === 'failed') ?? []
  const why = reason ?? (failed ? `${member}: ${failed.reason}` : null)
  return oneLine(`rollout ${id} of the fleet (${kind}) ${state}: ${done} of ${all.length}${why ? `; ${why}` : ''}`)
}

function statusText ({ name, app, member, nats, problem, outbox, members, rollout }: Fleet) {
  const facts = [`fleet     ${oneLine(name)}, ${oneLine(app)}, this is ${member}`,
    ...connectionFacts({ nats, problem }),
    ...(Number(outbox.waiting) > 0 || (nats.isConnected && outbox.problem) ? [`outbox    ${outboxText(outbox)}`] : []),
    ...(rollout ? [`rollout   ${rolloutText(rollout)}`] : [])]
  return `${facts.join('\n')}\n\n${
    formatTable(COLUMNS, members.map((member) => rowOf(member, member)), { right: [2, 4, 5, 6, 7] })
  }`
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

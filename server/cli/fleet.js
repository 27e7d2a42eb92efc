import { setTimeout as wait } from 'node:timers/promises'
import { formatAgo, formatDuration, formatExactDuration, formatLatency, formatRate } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { checkedDuration } from './duration.js'
import { fleetCrashes, settleFleetCrash } from './fleet-crashes.js'
import { fleetHistory } from './fleet-history.js'
import { table } from './output.js'
import { push } from './push.js'

/** @typedef {import('./commands.js').Context} Context */

const LOOK_EVERY_MS = 500
const LOST_AFTER_LOOKS = 6
const ENDED = new Set(['succeeded', 'failed', 'rolled-back', 'held'])

/** @type {Readonly<Record<string, (context: Context, subject?: string) => Promise<void>>>} */
const ACTIONS = Object.freeze({
  status,
  deploy: (context) => start('deploy', context),
  restart: (context) => start('restart', context),
  rollback: (context, release) => start('rollback', context, release),
  pause: (context) => steer('pause', context),
  resume: (context) => steer('resume', context),
  abort: (context) => steer('abort', context),
  history: fleetHistory,
  crashes: fleetCrashes,
  resolve: settleFleetCrash('resolve'),
  mute: settleFleetCrash('mute'),
  reopen: settleFleetCrash('reopen')
})

const BEGIN = ['batch', 'canary', 'deadline', 'note', 'onFailure', 'only', 'order', 'pause', 'wait']
const STEER = ['wait']
/** Beside what all of them have. @type {Readonly<Record<string, string[]>>} */
const OPTIONS = Object.freeze({ status: [], deploy: [...BEGIN, 'path', 'push', 'pushAlso'], restart: BEGIN, rollback: BEGIN, pause: STEER, resume: STEER, abort: STEER, history: ['limit', 'type'], crashes: [], resolve: [], mute: [], reopen: [] })
const ALL_OPTIONS = new Set(Object.values(OPTIONS).flat())

/** All others are about the whole fleet. */
const WITH_SUBJECT = new Set(['rollback', 'history', 'resolve', 'mute', 'reopen'])

/** @param {Context} context @param {string} [action] @param {string} [subject] */
export async function fleet (context, action = 'status', subject) {
  const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : null
  if (!act) throw new DeckError('usage', `fleet: expected one of ${Object.keys(ACTIONS).join(', ')}, received ${JSON.stringify(action)}`)
  if (subject !== undefined && !WITH_SUBJECT.has(action)) throw new DeckError('usage', `fleet ${action}: expected nothing more, received ${JSON.stringify(subject)}${action === 'restart' || action === 'deploy' ? ', which is about all members: --member of the command without "fleet" names one' : ''}`)
  const other = Object.keys(context.options).find((name) => ALL_OPTIONS.has(name) && !OPTIONS[action].includes(name))
  if (other) throw new DeckError('usage', `fleet ${action}: expected without --${other.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}, which is for ${Object.keys(OPTIONS).filter((name) => OPTIONS[name].includes(other)).join(', ')}`)
  await act(context, subject)
}

/** @param {Context} context */
async function status ({ api, options, print }) {
  const found = await api.get('/fleet')
  print(options.json ? json(found) : statusText(found))
}

/** @param {'restart' | 'deploy' | 'rollback'} kind @param {Context} context @param {string} [release] */
async function start (kind, context, release) {
  const { path, push: folder, note, batch, pause, deadline, order, canary, onFailure, only } = context.options
  if (folder !== undefined && path !== undefined) throw new DeckError('usage', 'fleet deploy: expected either --push or --path, received both')
  if (context.options.pushAlso !== undefined && folder === undefined) throw new DeckError('usage', 'fleet deploy --push-also: expected --push <folder> beside it, received none')
  const duration = (/** @type {string} */ flag, /** @type {string | undefined} */ text) => text === undefined ? undefined : checkedDuration(flag, text)
  const wanted = {
    kind,
    release,
    path,
    digest: folder === undefined ? undefined : await push(folder, context),
    note,
    order,
    canary,
    onFailure,
    batch: batch !== undefined && /^\d{1,9}$/.test(batch) ? Number(batch) : batch,
    pauseMs: duration('--pause', pause),
    deadlineMs: duration('--deadline', deadline),
    only: only && labelsOf(only)
  }
  const rollout = await context.api.post('/fleet/rollout', wanted)
  if (rollout.absent.length > 0) context.tell(`not in it, for they are silent: ${rollout.absent.join(', ')}`)
  await reportOn(rollout, context)
}

/** @param {'pause' | 'resume' | 'abort'} order @param {Context} context */
async function steer (order, context) {
  await reportOn(await context.api.post(`/fleet/rollout/${order}`), context, GOOD[order])
}

const GOOD = Object.freeze({ pause: ['paused', 'succeeded'], resume: ['succeeded'], abort: ['rolled-back'] })

/** @param {any} rollout @param {Context} context @param {string[]} [good] */
async function reportOn (rollout, context, good = ['succeeded']) {
  const { options, print } = context
  if (!options.wait) return print(options.json ? json(rollout) : rolloutText(rollout))
  const ended = await follow(rollout, context, new Set([...ENDED, ...good]))
  if (options.json) print(json(ended))
  if (!good.includes(ended.state)) throw new DeckError('rollout-failed', `rollout ${ended.id} of the fleet (${ended.kind}) is ${ended.state}: ${ended.reason ?? 'no reason was given'}`)
  if (!options.json) print(rolloutText(ended))
}

/**
 * @param {any} rollout @param {Context} context @param {Set<string>} ends  states
 * @returns {Promise<any>} once it is in one of them and nobody in a turn: it is done, or held until a person comes
 */
async function follow (rollout, { api, tell, timeoutMs }, ends) {
  /** @type {Map<string, string>} */
  const told = new Map()
  const until = performance.now() + timeoutMs
  let missed = 0
  /** @type {Set<string>} */
  let silent = new Set()
  for (let now = rollout; ; now = await look() ?? now) {
    if (now.uid !== rollout.uid) throw new DeckError('rollout-ended', `rollout ${rollout.id} of the fleet was followed by rollout ${now.id}`)
    for (const [member, turn] of Object.entries(now.turns)) {
      if (turn.state !== 'pending' && told.get(member) !== turn.state) tell(turnText(member, turn))
      told.set(member, turn.state)
    }
    // Who is silent in its turn may never be back: a held rollout waits for a person, not for that.
    const isAtRest = !Object.entries(now.turns).some(([member, { state }]) => (state === 'running' || state === 'reverting') && !(now.state === 'held' && silent.has(member)))
    if (ends.has(now.state) && isAtRest) return now
    if (performance.now() > until) throw new DeckError('timed-out', `rollout ${now.id} of the fleet is still ${now.state}`)
    await wait(LOOK_EVERY_MS)
  }

  /** @returns {Promise<any>} null: nobody knows it at the moment */
  async function look () {
    const { rollout: found, nats, members } = await api.get('/fleet')
    silent = new Set(members.filter((/** @type {any} */ { isSilent }) => nats.isConnected && isSilent).map((/** @type {any} */ each) => each.member))
    missed = found === null && nats.isConnected ? missed + 1 : 0
    if (missed === LOST_AFTER_LOOKS) throw new DeckError('rollout-failed', `rollout ${rollout.id} of the fleet is lost: NATS knows it no more. Whoever is in its turn ends it, and nobody else begins`)
    return found
  }
}

/** @param {string} member @param {any} turn */
function turnText (member, { state, startedAt, finishedAt, from, to, reason, isLate }) {
  // On the way back it began when the others were done.
  const took = startedAt && finishedAt && state !== 'reverted' ? ` in ${formatExactDuration(Date.parse(finishedAt) - Date.parse(startedAt))}` : ''
  const where = state === 'succeeded' && to ? ` (${from} to ${to})` : ''
  return oneLine(`${member}: ${state}${where}${took}${isLate ? ', late' : ''}${reason ? `: ${reason}` : ''}`)
}

/** @param {any} rollout */
function rolloutText ({ id, kind, state, turns, reason }) {
  const all = Object.entries(turns)
  const done = all.filter(([, turn]) => turn.state === 'succeeded').length
  // Whose guard has gone back after the end is in no reason of the rollout.
  const [member, failed] = all.find(([, turn]) => turn.state === 'failed') ?? []
  const why = reason ?? (failed && `${member}: ${failed.reason}`)
  return oneLine(`rollout ${id} of the fleet (${kind}) ${state}: ${done} of ${all.length}${why ? `; ${why}` : ''}`)
}

/** @param {any} fleet */
function statusText ({ name, member, nats, problem, outbox, members, rollout }) {
  const facts = [
    `fleet     ${oneLine(name)}, this is ${member}`,
    `nats    ${nats.isConnected ? `connected to ${nats.server}` : `out of reach since ${nats.since}: ${oneLine(String(nats.problem))}`}`,
    ...(problem ? [`problem   ${oneLine(problem)}`] : []),
    ...(outbox.waiting > 0 || (nats.isConnected && outbox.problem) ? [`outbox    ${outbox.waiting ?? 'unknown how many'} ${outbox.waiting === 1 ? 'event waits' : 'events wait'}${outbox.problem ? `: ${oneLine(outbox.problem)}` : ''}`] : []),
    ...(rollout ? [`rollout   ${rolloutText(rollout)}`] : [])
  ]
  const rows = members.map((/** @type {any} */ one) => [one.member, one.isSilent && !one.isOwn ? `silent for ${formatDuration(one.ageMs)}` : one.health.text, `${one.workers.ready}/${one.workers.desired}`, one.mark ? `${one.release} (${one.mark.label.toLowerCase()})` : one.release, formatRate(one.vitals.requestsPerSecond), formatLatency(one.vitals.latencyP99Ms), one.openCrashes, formatAgo(one.ageMs), one.version])
  return `${facts.join('\n')}\n\n${table(['MEMBER', 'HEALTH', 'READY', 'RELEASE', 'REQ/S', 'P99', 'CRASHES', 'HEARD', 'VERSION'], rows, { right: [2, 4, 5, 6, 7] })}`
}

/** @param {string} text `zone=a,disk=ssd` @returns {Record<string, string>} @throws {DeckError} usage */
function labelsOf (text) {
  const pairs = text.split(',').map((pair) => /^([\w.-]{1,60})=(.*)$/.exec(pair)?.slice(1) ?? [])
  if (pairs.some(([label]) => label === undefined)) throw new DeckError('usage', `--only: expected labels such as zone=a, received ${JSON.stringify(text)}`)
  const labels = Object.fromEntries(pairs)
  if (Object.keys(labels).length < pairs.length) throw new DeckError('usage', `--only: expected one value of each label, received ${JSON.stringify(text)}`)
  return labels
}

/** @param {unknown} value */
function json (value) {
  return JSON.stringify(value, null, 2)
}

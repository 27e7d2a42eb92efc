import { isBlocked } from './drift.js'
import { listStandbys, createStandby } from './promotion.js'
import { recordExit } from './restart-policy.js'
import { drain, forkStandby, uptime } from './worker.js'

/** @typedef {import('./turn.js').Turn} Turn */
/** @typedef {import('./state.js').Worker} Worker */

/**
 * What is known of the workers on standby as a whole. `retryAt`: wall time of the next try, after some have died;
 * `useless`: why none is kept of this release.
 * @typedef {{ retryAt: string | null, record: import('./restart-policy.js').RestartRecord, useless: { release: string, reason: string } | null }} Standby
 */

/** @param {Turn} turn has as many of them as are wanted, one fork after the other and none while a slot waits for its worker */
export function keepStandbys (turn) {
  const { state } = turn
  const living = listStandbys(state)
  const wanted = countWanted(turn)
  for (const worker of living.slice(wanted)) endStandby(turn, worker, { cause: causeOfSurplus(turn), actor: 'system', rollout: null })
  if (living.length < wanted && state.standby.retryAt === null && isCalm(turn)) forkOne(turn)
}

/** @param {Turn} turn */
function countWanted ({ state: { phase, upgrade, standby, release, options } }) {
  return phase === 'running' && !upgrade && standby.useless?.release !== release.id ? options.standby ?? 0 : 0
}

/** @param {Turn} turn */
function causeOfSurplus ({ state: { phase, upgrade } }) {
  if (phase === 'stopping') return 'shutdown'
  return upgrade ? 'upgrade' : 'scale-down'
}

/** @param {Turn} turn whether nobody waits for the processor that a fork takes */
function isCalm ({ state: { rollout, workers } }) {
  return !rollout && Object.values(workers).every(({ state }) => state !== 'starting')
}

/** @param {Turn} turn */
function forkOne (turn) {
  const { id } = turn.state.release
  // Its code would be another one than that of the slots.
  if (isBlocked(turn, id)) wait(turn, turn.state.options.restart.maxDelayMs)
  else forkStandby(turn, id)
}

/** @param {Turn} turn @param {number} ms */
function wait (turn, ms) {
  turn.state.standby.retryAt = turn.isoTime(ms)
  turn.order({ type: 'set-deadline', deadline: 'standby', id: 0, ms })
}

/** @param {Turn} turn it has waited long enough */
export function retryStandby ({ state: { standby } }) {
  standby.retryAt = null
}

/** @param {Turn} turn @param {Worker} worker its app has come to where it listens */
export function becomeStandby (turn, worker) {
  if (worker.slot !== null || worker.state !== 'starting') return
  worker.state = 'standby'
  turn.order({ type: 'clear-deadline', deadline: 'ready', id: worker.id })
  turn.tellOf('worker.standby', worker, { uptimeMs: uptime(turn, worker) })
}

/** @param {Turn} turn @param {Worker} worker one that has died, or is about to, without having been asked to @param {string} cause */
export function loseStandby (turn, worker, cause) {
  const { standby, options: { restart } } = turn.state
  if (cause === 'operator') return
  const wasLooping = standby.record.crashLooping
  const { record, delayMs } = recordExit(standby.record, { at: turn.at, uptimeMs: uptime(turn, worker), random: turn.random }, restart)
  standby.record = record
  if (delayMs > 0) wait(turn, delayMs)
  if (!record.crashLooping || wasLooping) return
  const { restarts, windowMs } = restart.intensity
  turn.tell('worker.crash-looping', {
    worker: worker.id,
    release: worker.release,
    message: `the standby workers crash-loop: more than ${restarts} restarts within ${windowMs} ms; the next ones wait longer`
  })
}

/** @param {Turn} turn @param {Worker} worker its event loop does not answer @param {string} message */
export function killHungStandby (turn, worker, message) {
  worker.state = 'stopping'
  worker.intent = { cause: 'hung', actor: 'system', rollout: null }
  turn.tellOf('worker.unresponsive', worker, { cause: 'hung', actor: 'system', message })
  turn.order({ type: 'kill', worker: worker.id })
}

/** @param {Turn} turn @param {Worker} worker has had the time that a worker has to get ready */
export function neverHeld (turn, worker) {
  giveUp(turn, worker, `standby worker ${worker.id} did not listen within ${worker.readyTimeoutMs} ms (option ready.timeoutMs), and standby workers need an app that does`)
}

/** @param {Turn} turn @param {Worker} worker @param {{ name: string, place: string | null }} read its app asks for its slot while it loads */
export function readSlot (turn, worker, { name, place }) {
  if (worker.slot === null && canStand(worker)) giveUp(turn, worker, `standby worker ${worker.id} has read ${name} while it loaded${place ? ` (${place})` : ''}, and a standby worker has no slot yet`)
}

/** @param {Worker} worker */
function canStand ({ state }) {
  return state === 'starting' || state === 'standby'
}

/** @param {Turn} turn @param {Worker} worker @param {string} reason the next one would be of no more use */
function giveUp (turn, worker, reason) {
  turn.state.standby.useless = { release: worker.release, reason }
  turn.tellOf('standby.useless', worker, { actor: 'system', message: `${reason}: none is kept until the next release` })
  endStandby(turn, worker, { cause: 'boot-failure', actor: 'system', rollout: null })
}

/** @param {Turn} turn @param {{ cause: string, actor: string | null, rollout: number | null }} intent all of them */
export function endStandbys (turn, intent) {
  for (const worker of listStandbys(turn.state)) endStandby(turn, worker, intent)
}

/** @param {Turn} turn @param {{ kind: string, actor: string, id: number }} rollout it has succeeded: what stands by has loaded what was before */
export function renewStandbys (turn, { kind, actor, id }) {
  endStandbys(turn, { cause: kind, actor, rollout: id })
  turn.state.standby = createStandby()
  turn.order({ type: 'clear-deadline', deadline: 'standby', id: 0 })
}

/** @param {Turn} turn @param {Worker} worker @param {import('./state.js').Intent} intent */
export function endStandby (turn, worker, intent) {
  drain(turn, worker, intent)
}

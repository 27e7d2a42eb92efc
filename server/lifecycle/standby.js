import { isBlocked } from './drift.js'
import { listStandbys, createStandby } from './promotion.js'
import { recordExit } from './restart-policy.js'
import { drainWorker, forkStandby, uptimeOf } from './worker.js'
import { durationText } from './duration.js'

/** @typedef {import('./transition.js').Transition} Transition */
/** @typedef {import('./state.js').Worker} Worker */

/**
 * The state of all standby workers. `retryAt`: wall time of the next try after one has died; `useless`: why none is kept
 * of this release.
 * @typedef {{ retryAt: string | null, record: import('./restart-policy.js').RestartRecord, useless: { release: string, reason: string } | null }} Standby
 */

/** Keeps as many as are wanted: one fork at a time, and none while a slot waits for its worker. @param {Transition} transition */
export function keepStandbys (transition) {
  const { state } = transition
  const living = listStandbys(state)
  const wanted = countWanted(transition)
  for (const worker of living.slice(wanted)) endStandby(transition, worker, { cause: causeOfSurplus(transition), actor: 'system', rollout: null })
  if (living.length < wanted && state.standby.retryAt === null && isCalm(transition)) forkOne(transition)
}

/** @param {Transition} transition */
function countWanted ({ state: { phase, upgrade, standby, release, options } }) {
  return phase === 'running' && !upgrade && standby.useless?.release !== release.id ? options.standby ?? 0 : 0
}

/** @param {Transition} transition */
function causeOfSurplus ({ state: { phase, upgrade } }) {
  if (phase === 'stopping') return 'shutdown'
  return upgrade ? 'upgrade' : 'scale-down'
}

/** @param {Transition} transition @returns {boolean} whether no other worker needs the CPU that a fork takes */
function isCalm ({ state: { rollout, workers } }) {
  return !rollout && Object.values(workers).every(({ state }) => state !== 'starting')
}

/** @param {Transition} transition */
function forkOne (transition) {
  const { id } = transition.state.release
  // It would load other code than the slots run.
  if (isBlocked(transition, id)) waitToRetry(transition, transition.state.options.restart.maxDelayMs)
  else forkStandby(transition, id)
}

/** @param {Transition} transition @param {number} ms */
function waitToRetry (transition, ms) {
  transition.state.standby.retryAt = transition.isoTime(ms)
  transition.command({ type: 'set-deadline', deadline: 'standby', id: 0, ms })
}

/** @param {Transition} transition the backoff has passed */
export function retryStandby ({ state: { standby } }) {
  standby.retryAt = null
}

/** @param {Transition} transition @param {Worker} worker has loaded its app up to where it listens */
export function becomeStandby (transition, worker) {
  if (worker.slot !== null || worker.state !== 'starting') return
  worker.state = 'standby'
  transition.command({ type: 'clear-deadline', deadline: 'ready', id: worker.id })
  transition.emitForWorker('worker.standby', worker, { uptimeMs: uptimeOf(transition, worker) })
}

/** @param {Transition} transition @param {Worker} worker has died unasked, or is about to @param {string} cause */
export function loseStandby (transition, worker, cause) {
  const { standby, options: { restart } } = transition.state
  if (cause === 'operator') return
  const wasLooping = standby.record.crashLooping
  const { record, delayMs } = recordExit(standby.record, { at: transition.at, uptimeMs: uptimeOf(transition, worker), random: transition.random }, restart)
  standby.record = record
  if (delayMs > 0) waitToRetry(transition, delayMs)
  if (!record.crashLooping || wasLooping) return
  const { restarts, windowMs } = restart.intensity
  transition.emit('worker.crash-looping', {
    worker: worker.id,
    release: worker.release,
    message: `the standby workers crash-loop: more than ${restarts} restarts within ${durationText(windowMs)}; the next ones wait longer`
  })
}

/** @param {Transition} transition @param {Worker} worker has not come to listen within ready.timeoutMs */
export function standbyTooSlow (transition, worker) {
  const limit = durationText(worker.readyTimeoutMs)
  giveUpStandbys(transition, worker, `standby worker ${worker.id} did not listen within ${limit} (option ready.timeoutMs), and standby workers need an app that does`)
}

/** @param {Transition} transition @param {Worker} worker @param {import('./state.js').Inputs['worker-read-slot']} read  the variable of its slot that its app reads while it loads */
export function readSlot (transition, worker, { name, place }) {
  if (worker.slot !== null || !canStand(worker)) return
  const where = place ? ` (${place})` : ''
  giveUpStandbys(transition, worker, `standby worker ${worker.id} has read ${name} while it loaded${where}, and a standby worker has no slot yet`)
}

/** @param {Worker} worker */
function canStand ({ state }) {
  return state === 'starting' || state === 'standby'
}

/** @param {Transition} transition @param {Worker} worker @param {string} reason why no standby worker of this release can be used */
function giveUpStandbys (transition, worker, reason) {
  transition.state.standby.useless = { release: worker.release, reason }
  transition.emitForWorker('standby.useless', worker, { actor: 'system', message: `${reason}: none is kept until the next release` })
  endStandby(transition, worker, { cause: 'boot-failure', actor: 'system', rollout: null })
}

/** @param {Transition} transition @param {{ cause: string, actor: string | null, rollout: number | null }} intent */
export function endStandbys (transition, intent) {
  for (const worker of listStandbys(transition.state)) endStandby(transition, worker, intent)
}

/** @param {Transition} transition @param {{ kind: string, actor: string, id: number }} rollout has succeeded, so the standby workers have loaded old code */
export function renewStandbys (transition, { kind, actor, id }) {
  endStandbys(transition, { cause: kind, actor, rollout: id })
  transition.state.standby = createStandby()
  transition.command({ type: 'clear-deadline', deadline: 'standby', id: 0 })
}

/** @param {Transition} transition @param {Worker} worker @param {import('./state.js').Intent} intent */
export function endStandby (transition, worker, intent) {
  drainWorker(transition, worker, intent)
}

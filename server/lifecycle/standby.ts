import { isBlocked } from './drift.ts'
import { listStandbys, createStandby } from './promotion.ts'
import { recordExit, type RestartRecord } from './restart-policy.ts'
import { drainWorker, forkStandby, uptimeOf } from './worker.ts'
import { durationText } from './duration.ts'
import type { Transition } from './transition.ts'
import type { Inputs, Intent, Worker } from './state.ts'

/**
 * The state of all standby workers. `retryAt`: wall time of the next try after one has died; `useless`: why none is
 * kept of this release.
 */
export type Standby = { retryAt: string | null, record: RestartRecord,
  useless: { release: string, reason: string } | null }

/** Keeps as many as are wanted: one fork at a time, and none while a slot waits for its worker. */
export function keepStandbys (transition: Transition) {
  const { state } = transition
  const living = listStandbys(state)
  const wanted = countWanted(transition)
  for (const worker of living.slice(wanted))
    endStandby(transition, worker, { cause: causeOfSurplus(transition), actor: 'system', rollout: null })
  if (living.length < wanted && state.standby.retryAt === null && isCalm(transition)) forkOne(transition)
}

function countWanted ({ state: { phase, upgrade, standby, release, options } }: Transition) {
  return phase === 'running' && !upgrade && standby.useless?.release !== release.id ? options.standby ?? 0 : 0
}

function causeOfSurplus ({ state: { phase, upgrade } }: Transition) {
  if (phase === 'stopping') return 'shutdown'
  return upgrade ? 'upgrade' : 'scale-down'
}

/** Tells whether no other worker needs the CPU that a fork takes */
function isCalm ({ state: { rollout, workers } }: Transition): boolean {
  return !rollout && Object.values(workers).every(({ state }) => state !== 'starting')
}

function forkOne (transition: Transition) {
  const { id } = transition.state.release
  // It would load other code than the slots run.
  if (isBlocked(transition, id)) waitToRetry(transition, transition.state.options.restart.maxDelayMs)
  else forkStandby(transition, id)
}

function waitToRetry (transition: Transition, ms: number) {
  transition.state.standby.retryAt = transition.isoTime(ms)
  transition.command({ type: 'set-deadline', deadline: 'standby', id: 0, ms })
}

/** `transition`: the backoff has passed */
export function retryStandby ({ state: { standby } }: Transition) {
  standby.retryAt = null
}

/** `worker`: has loaded its app up to where it listens */
export function becomeStandby (transition: Transition, worker: Worker) {
  if (worker.slot !== null || worker.state !== 'starting') return
  worker.state = 'standby'
  transition.command({ type: 'clear-deadline', deadline: 'ready', id: worker.id })
  transition.emitForWorker('worker.standby', worker, { uptimeMs: uptimeOf(transition, worker) })
}

/** `worker`: has died unasked, or is about to */
export function loseStandby (transition: Transition, worker: Worker, cause: string) {
  const { standby, options: { restart } } = transition.state
  if (cause === 'operator') return
  const wasLooping = standby.record.crashLooping
  const { record, delayMs } = recordExit(standby.record, { at: transition.at, uptimeMs: uptimeOf(transition, worker),
    random: transition.random }, restart)
  standby.record = record
  if (delayMs > 0) waitToRetry(transition, delayMs)
  if (!record.crashLooping || wasLooping) return
  const { restarts, windowMs } = restart.intensity
  transition.emit('worker.crash-looping', { worker: worker.id, release: worker.release,
    message: `the standby workers crash-loop: more than ${restarts} restarts within ${
      durationText(windowMs)
    }; the next ones wait longer` })
}

/** `worker`: has not come to listen within ready.timeoutMs */
export function standbyTooSlow (transition: Transition, worker: Worker) {
  const limit = durationText(worker.readyTimeoutMs)
  giveUpStandbys(transition, worker,
    `standby worker ${worker.id} did not listen within ${limit} (option ready.timeoutMs), and standby workers need an app that does`)
}

/** `read`: the variable of its slot that its app reads while it loads */
export function readSlot (transition: Transition, worker: Worker, { name, place }: Inputs['worker-read-slot']) {
  if (worker.slot !== null || !['starting', 'standby'].includes(worker.state)) return
  const where = place ? ` (${place})` : ''
  giveUpStandbys(transition, worker,
    `standby worker ${worker.id} has read ${name} while it loaded${where}, and a standby worker has no slot yet`)
}

/** `reason`: why no standby worker of this release can be used */
function giveUpStandbys (transition: Transition, worker: Worker, reason: string) {
  transition.state.standby.useless = { release: worker.release, reason }
  transition.emitForWorker('standby.useless', worker, { actor: 'system',
    message: `${reason}: none is kept until the next release` })
  endStandby(transition, worker, { cause: 'boot-failure', actor: 'system', rollout: null })
}

export function endStandbys (transition: Transition,
  intent: { cause: string, actor: string | null, rollout: number | null })
{
  for (const worker of listStandbys(transition.state)) endStandby(transition, worker, intent)
}

/** `rollout`: has succeeded, so the standby workers have loaded old code */
export function renewStandbys (transition: Transition,
  { kind, actor, id }: { kind: string, actor: string, id: number })
{
  endStandbys(transition, { cause: kind, actor, rollout: id })
  transition.state.standby = createStandby()
  transition.command({ type: 'clear-deadline', deadline: 'standby', id: 0 })
}

export function endStandby (transition: Transition, worker: Worker, intent: Intent) {
  drainWorker(transition, worker, intent)
}

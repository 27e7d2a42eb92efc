import type { Transition } from './transition.ts'
import type { Drift, Input, PoolState, Refusal, Slot, Worker } from './state.ts'

/** How often a held slot checks whether its files are restored. */
const LOOK_AGAIN_MS = 2000

/**
 * What happens where the files of a release have changed under its workers, so that a new worker would run other code
 * than the old one under the same name: it is marked, or, if so configured, not started.
 * @returns whether nothing is to be started on it
 */
export function isBlocked (transition: Transition, release: string): boolean {
  return transition.state.options.releases?.onDrift === 'hold' && isOtherCode(transition.drift, release)
}

/** `release`: is blocked */
export function whyBlocked (transition: Transition, release: string) {
  return `${changeText(release, transition.drift[release])} (option releases.onDrift: hold)`
}

/** @returns why a rollback to it would start other code than it has served with, whatever `releases.onDrift` says */
export function whyNoReturn (transition: Transition, release: string): string | null {
  return isOtherCode(transition.drift, release)
    ? `${release} cannot come back: ${changeText(release, transition.drift[release])}`
    : null
}

/** @returns why a rollback to it may not bring back all that it was, though its code comes back */
export function returnCaveat (transition: Transition, release: string): string | null {
  const drift = transition.drift[release]
  return drift && drift.kind !== 'code' ? caveatText(release, drift) : null
}

/** `drift`: of files that are not its code */
export function caveatText (release: string, drift: Drift) {
  return `${release} may not be what it was: ${changeText(release, drift)}`
}

/** @returns what is known to be other than at its deploy, for a worker that is forked on it now */
export function knownDrift ({ drift }: Transition, release: string): Drift | null {
  return drift[release] && drift[release].kind !== 'unknown' ? drift[release] : null
}

/** `slot`: waits until its files are restored, or another release is deployed to it */
export function holdSlot (transition: Transition, slot: Slot) {
  const isNews = slot.blocked === null
  const ms = Math.min(LOOK_AGAIN_MS, transition.state.options.restart.maxDelayMs)
  slot.blocked = transition.drift[slot.release]
  slot.retryAt = transition.isoTime(ms)
  transition.command({ type: 'set-deadline', deadline: 'retry', id: slot.number, ms })
  if (!isNews) return
  transition.emit('slot.held', { slot: slot.number, release: slot.release, actor: 'system',
    message: `slot ${slot.number} is held: ${whyBlocked(transition, slot.release)}; deploy, or restore them`,
    detail: slot.blocked })
}

/** `slot`: gets a worker now */
export function resumeSlot (transition: Transition, slot: Slot) {
  if (slot.blocked === null) return
  slot.blocked = null
  transition.emit('slot.resumed', { slot: slot.number, release: slot.release, actor: 'system',
    message: `slot ${slot.number} is no longer held: the files of ${slot.release} are restored` })
}

/** `worker`: that has just been forked */
export function tellDrift (transition: Transition, worker: Worker) {
  const { drift } = worker
  if (!drift) return
  transition.emitForWorker('worker.drifted', worker, { actor: 'system',
    message: `worker ${worker.id} (slot ${worker.slot}) ${
      drift.kind === 'code' ? 'does' : 'may'
    } not run what ${worker.release} was: ${changeText(worker.release, drift)}`, detail: drift })
}

/** `input`: an operator's. Returns because it would start workers on a release that has drifted. */
export function driftRefusal (state: PoolState, { drift = {}, ...input }: Input): Refusal | null {
  const isMeant = input.type === 'restart-worker' || input.type === 'upgrade' ||
    (input.type === 'rollout' && input.kind === 'restart')
  if (!isMeant || state.options.releases?.onDrift !== 'hold') return null
  const drifted = [...new Set(state.slots.map((slot) => slot.release))].find((id) => isOtherCode(drift, id))
  if (!drifted) return null
  return { code: 'drifted',
    message: `${changeText(drifted, drift[drifted])} (option releases.onDrift: hold); deploy, or restore them`,
    details: { release: drifted, ...drift[drifted] } }
}

export function changeText (release: string, { kind, count, files, by }: Drift) {
  if (kind === 'unknown') return 'it is not known whether files of its folder have changed since its deploy'
  if (by !== null) return `${by} was deployed from the same folder later`
  const more = count - files.length
  const named = `${files.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  if (kind === 'folder')
    return `${count} ${
      count === 1 ? 'file of its folder has' : 'files of its folder have'
    } changed since its deploy: ${named}`
  return `files of ${release} changed after its deploy: ${named}`
}

/**
 * Nothing is kept from starting by a change of other files, which the app may have written itself, such as a database.
 */
function isOtherCode (drift: Record<string, Drift>, release: string) {
  return drift[release]?.kind === 'code'
}

import { MAX_TIMES } from './boot-room.ts'
import { adoptOrphan } from './orphans.ts'
import { durationText } from './duration.ts'
import type { Transition } from './transition.ts'
import type { Inputs } from './state.ts'

/** A master may take this long to start, beside its workers. */
const MASTER_BOOT_MS = 30_000
/** This many ids are kept for the workers of the next master, so that no two masters give away the same one. */
const RESERVED_IDS = 1000

/**
 * A change of masters, as the old master sees it: the next one starts beside it, and this one works on until that one
 * is ready.
 */
export const UPGRADE_HANDLERS = {
  // In a host the next master has to wait for other apps as well, which may need longer to get ready.
  upgrade ({ state, emit, command, isoTime },
    { execPath, note = null, readyWithinMs = state.options.ready.timeoutMs, actor })
  {
    const limitMs = readyWithinMs + MASTER_BOOT_MS
    state.upgrade = { startedAt: isoTime(), actor, note, execPath, readyWithinMs, firstWorker: state.nextWorker,
      limitMs, reason: null }
    state.nextWorker += RESERVED_IDS
    emit('master.upgrading', { actor, message: `the next master starts${note ? `: ${note}` : ''}`,
      detail: { execPath } })
    command({ type: 'start-next', execPath })
    command({ type: 'set-deadline', deadline: 'upgrade', id: 0, ms: state.upgrade.limitMs })
  },

  'next-forks' ({ state, command }) {
    if (!state.upgrade) return
    // From here on it gives its workers more time by itself where they wait for a CPU.
    state.upgrade.limitMs = state.upgrade.readyWithinMs * MAX_TIMES + MASTER_BOOT_MS
    command({ type: 'set-deadline', deadline: 'upgrade', id: 0, ms: state.upgrade.limitMs })
  },

  'next-failing' ({ state }, { reason }) {
    if (state.upgrade) state.upgrade.reason ??= reason
  },

  'next-gone' (transition, { reason, lastWorker, orphans }) {
    const { upgrade } = transition.state
    if (!upgrade) return
    endUpgrade(transition, lastWorker)
    transition.emit('master.upgrade-failed', { actor: upgrade.actor,
      message: upgrade.reason ?? `the next master ended before it was ready (${reason})` })
    for (const orphan of orphans)
      adoptOrphan(transition, { ...orphan, intent: { cause: 'rollback', actor: upgrade.actor, rollout: null } })
  },

  'hand-over' (transition) {
    // From here on this master replaces nothing; the workers are the next master's.
    transition.state.phase = 'stopping'
    endUpgrade(transition, 0)
  }
} satisfies { [Type in keyof Inputs]?: (transition: Transition, input: Inputs[Type]) => void }

export function upgradeTooSlow (transition: Transition) {
  const { state } = transition
  if (state.upgrade)
    cancelUpgrade(transition, `the next master was not ready within ${durationText(state.upgrade.limitMs)}`)
}

/** `reason`: counts unless there is an earlier one */
export function cancelUpgrade ({ state, command }: Transition, reason: string) {
  if (!state.upgrade) return
  state.upgrade.reason ??= reason
  command({ type: 'cancel-next', reason: state.upgrade.reason })
}

/** `lastWorker`: the highest id that the next master has given away */
function endUpgrade ({ state, command }: Transition, lastWorker: number) {
  if (!state.upgrade) return
  const { firstWorker } = state.upgrade
  // Ids go on without a gap where this master has forked nothing meanwhile.
  if (state.nextWorker === firstWorker + RESERVED_IDS) state.nextWorker = Math.max(firstWorker, lastWorker + 1)
  state.upgrade = null
  command({ type: 'clear-deadline', deadline: 'upgrade', id: 0 })
}

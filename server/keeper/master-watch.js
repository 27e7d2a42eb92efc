import { setTimeout as wait } from 'node:timers/promises'
import { errorText } from '../errors.js'
import { createHeartbeat, queuedMs, tickFor } from '../system/heartbeat.js'
import { lookInMiddleOfSecond } from '../../workers/look-together.js'

/**
 * What the keeper knows of a master that does not answer.
 * @typedef {{ silentMs: number, stack: string | null, reason: string | null }} Hang `reason`: why there is no stack
 * @typedef {{ child: import('node:child_process').ChildProcess, heardAt?: number }} Watched  `heardAt`: its last beat, monotonic ms; an older master has none
 */

/** The workers serve on meanwhile. */
const CAPTURE_WITHIN_MS = 10_000
/** The signal that asks for its stack also ends a call that waits in the kernel, so one beat proves nothing. */
const PROVES = 2
const PROVEN_WITHIN_MS = 3000
/** @typedef {{ afterMs: number, stack: 'on' | 'off' }} HangOptions */

/** @type {Readonly<HangOptions>} */
const DEFAULTS = Object.freeze({ afterMs: 10_000, stack: 'on' })

/**
 * Listens whether the masters still say something once a second. One that hangs keeps nobody from being served, but it
 * replaces no worker either.
 * @template {Watched} Master
 * @param {object} parts
 * @param {() => Master[]} parts.list those that should answer
 * @param {(master: Master, hang: Hang) => void} parts.onHung
 * @param {(master: Master) => void} parts.onAnswered after it has been silent, and asked where it is
 * @param {typeof captureMasterStack} [parts.capture]
 */
export function createMasterWatch ({ list, onHung, onAnswered, capture = captureMasterStack }) {
  let options = DEFAULTS
  let heartbeat = newHeartbeat()
  let stop = startTimer()
  /** Beats since a master that is silent was asked where it is. @type {Map<number, number>} */
  const beatsSince = new Map()

  return {
    /** @param {Partial<HangOptions> | null | undefined} wanted  of the configuration; `afterMs`: 0: it does not watch */
    configure (wanted) {
      options = { ...DEFAULTS, ...wanted }
      heartbeat = newHeartbeat()
      stop()
      stop = startTimer()
    },

    /** @param {Master} master @param {{ isInspected: boolean }} beat */
    heard (master, { isInspected }) {
      const { pid } = master.child
      if (pid === undefined) return
      master.heardAt = performance.now()
      const beats = beatsSince.get(pid)
      if (beats !== undefined) beatsSince.set(pid, beats + 1)
      if (beats !== undefined && beats + 1 < PROVES) return
      if (heartbeat.heard(pid)) onAnswered(master)
      heartbeat.excuse(pid, isInspected)
    },

    /** @param {number | undefined} pid */
    forget (pid) { if (pid !== undefined) heartbeat.forget(pid) }
  }

  function newHeartbeat () {
    return createHeartbeat({ timeoutMs: options.afterMs, queuedMs })
  }

  function startTimer () {
    return options.afterMs > 0 ? lookInMiddleOfSecond(checkMasters, tickFor(options.afterMs)) : () => {}
  }

  function checkMasters () {
    const pids = list().filter(({ heardAt }) => heardAt !== undefined).map(({ child }) => Number(child.pid))
    for (const { worker: pid, silentMs } of heartbeat.tick(performance.now(), pids)) {
      beatsSince.set(pid, 0)
      askWhere(pid).then((found) => {
        beatsSince.delete(pid)
        const master = list().find(({ child }) => child.pid === pid)
        if (master && heartbeat.isSilent(pid)) onHung(master, { silentMs, ...found })
      })
    }
  }

  /** @param {number} pid @returns {ReturnType<typeof captureMasterStack>} once it has had the time to prove that it is well */
  async function askWhere (pid) {
    const found = options.stack === 'off' ? { stack: null, reason: 'watchdog.stack is "off"' } : await capture(pid)
    if (beatsSince.get(pid)) await wait(PROVEN_WITHIN_MS)
    return found
  }
}

/** @param {number} pid @returns {Promise<{ stack: string | null, reason: string | null }>} */
async function captureMasterStack (pid) {
  try {
    // A keeper loads what it may never need only then.
    const { captureStack } = await import('../system/stuck-stack.js')
    return await captureStack(pid, { withinMs: CAPTURE_WITHIN_MS })
  } catch (error) {
    return { stack: null, reason: errorText(error) }
  }
}

import os from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { errorText } from '../errors.ts'
import { BEAT_MS, createHeartbeat, queuedMs } from '../system/heartbeat.ts'
import { lookInMiddleOfSecond } from '../../workers/look-together.ts'
import type { ChildProcess } from 'node:child_process'

/**
 * What the keeper knows of a master that does not answer, or that takes too much memory.
 * `reason`: why there is no stack; `memoryBytes`: it answered, and took so much
 */
export type Hang = { silentMs: number, stack: string | null, reason: string | null, memoryBytes?: number }
/** `heardAt`: its last beat, monotonic ms; an older master has none; `largeBeats`: since when it takes too much memory */
export type Watched = { child: ChildProcess, heardAt?: number, largeBeats?: number }

/** The workers serve on meanwhile. */
const CAPTURE_WITHIN_MS = 10_000
/** The signal that asks for its stack also ends a call that waits in the kernel, so one beat proves nothing. */
const PROVES = 2
const PROVEN_WITHIN_MS = 5000
const MIB = 1024 ** 2
/**
 * A host of sixty apps takes a third of it. The kernel may end others before a master that has grown, and a master
 * loses nothing when it is replaced. A quarter of it is enough for one whose pages are looked at, however small the
 * machine is.
 */
const MAX_MEMORY_BYTES = Math.max(256 * MIB,
  Math.min(1024 * MIB, (process.constrainedMemory() || Infinity) / 2, os.totalmem() / 2))
/** A flood of requests or a search of logs may take much for a moment. */
const TOO_LARGE_BEATS = 15
export type HangOptions = { afterMs: number, stack: 'on' | 'off' }

const DEFAULTS: Readonly<HangOptions> = Object.freeze({ afterMs: 10_000, stack: 'on' })

/**
 * Listens whether the masters still say something, and how large they are. One that hangs keeps nobody
 * from being served, but it replaces no worker either.
 */
export function createMasterWatch<Master extends Watched> ({ list, onHung, onAnswered, capture = captureMasterStack }: {
  /** those that should answer */
  list: () => Master[],
  onHung: (master: Master, hang: Hang) => void,
  /** after it has been silent, and asked where it is */
  onAnswered: (master: Master) => void,
  capture?: typeof captureMasterStack
}) {
  let options = DEFAULTS
  let heartbeat = newHeartbeat()
  let stop = startTimer()
  /** Beats since a master that is silent was asked where it is. */
  const beatsSince: Map<number, number> = new Map()

  return {
    /** `wanted`: of the configuration; `afterMs`: 0: it does not watch */
    configure (wanted: Partial<HangOptions> | null | undefined) {
      options = { ...DEFAULTS, ...wanted }
      heartbeat = newHeartbeat()
      stop()
      stop = startTimer()
    },

    heard (master: Master, { isInspected, memoryBytes = 0 }: { isInspected: boolean, memoryBytes?: number }) {
      const { pid } = master.child
      if (pid === undefined) return
      master.heardAt = performance.now()
      master.largeBeats = memoryBytes > MAX_MEMORY_BYTES ? (master.largeBeats ?? 0) + 1 : 0
      if (master.largeBeats === TOO_LARGE_BEATS && options.afterMs > 0)
        onHung(master, { silentMs: 0, stack: null, reason: null, memoryBytes })
      const beats = beatsSince.get(pid)
      if (beats !== undefined) beatsSince.set(pid, beats + 1)
      if (beats !== undefined && beats + 1 < PROVES) return
      if (heartbeat.heard(pid)) onAnswered(master)
      heartbeat.excuse(pid, isInspected)
    },

    forget (pid: number | undefined) {
      if (pid !== undefined) heartbeat.forget(pid)
    }
  }

  function newHeartbeat () {
    return createHeartbeat({ timeoutMs: options.afterMs, tickMs: tickMs(), queuedMs })
  }

  function startTimer () {
    return options.afterMs > 0 ? lookInMiddleOfSecond(checkMasters, tickMs()) : () => {}
  }

  function tickMs () {
    return Math.min(options.afterMs, BEAT_MS)
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

  /** @returns once it has had the time to prove that it is well */
  async function askWhere (pid: number): ReturnType<typeof captureMasterStack> {
    const found = options.stack === 'off' ? { stack: null, reason: 'watchdog.stack is "off"' } : await capture(pid)
    if (beatsSince.get(pid)) await wait(PROVEN_WITHIN_MS)
    return found
  }
}

async function captureMasterStack (pid: number): Promise<{ stack: string | null, reason: string | null }> {
  try {
    // A keeper loads what it may never need only then.
    const { captureStack } = await import('../system/stuck-stack.ts')
    return await captureStack(pid, { withinMs: CAPTURE_WITHIN_MS })
  } catch (error) {
    return { stack: null, reason: errorText(error) }
  }
}

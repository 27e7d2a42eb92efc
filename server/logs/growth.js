import { watch } from 'node:fs'
import { liveFile, sizeOf } from './log-files.js'

/** @typedef {import('./log-files.js').Log} Log */
/** @typedef {ReturnType<typeof createGrowth>} Growth */

/** How much a log may grow unseen. */
const LOOK_EVERY_MS = 200
/** Without anything new for so long a log is left to the system, which tells of the next line. */
const QUIET_MS = 2000
/** How long it is looked at all the same, where the system cannot. */
const UNWATCHED_MS = 60_000

/**
 * Knows which logs are being written, so that nobody has to look at all of them all the time.
 * @param {object} parts
 * @param {string} parts.folder
 * @param {(log: Log) => void} parts.onAwake  one that was quiet is written again
 * @param {(logs: Log[]) => void} [parts.onLook]  hears of those that may have grown, while there are some
 * @param {() => number} [parts.now]  monotonic, ms
 * @param {typeof watch} [parts.watchFile]
 */
export function createGrowth ({ folder, onAwake, onLook = () => {}, now = () => performance.now(), watchFile = watch }) {
  /** @type {Set<One>} */
  const awake = new Set()
  /** @type {Map<One, import('node:fs').FSWatcher>} those that are quiet */
  const asleep = new Map()
  let isStarted = false
  /** @type {NodeJS.Timeout | undefined} only while a log is awake */
  let timer

  return {
    start () {
      isStarted = true
      beginLooking()
    },

    /** @param {Log} log is about to be written */
    add (log) {
      const file = liveFile(folder, log)
      awake.add({ log, file, size: sizeOf(file), quietSince: now() })
      beginLooking()
    },

    /** @returns {Log[]} those that may have grown a moment ago */
    awake: listAwake,

    stop () {
      isStarted = false
      clearTimeout(timer)
      for (const watcher of asleep.values()) watcher.close()
      asleep.clear()
      awake.clear()
    }
  }

  function beginLooking () {
    if (isStarted && awake.size > 0) timer ??= setTimeout(look, LOOK_EVERY_MS).unref()
  }

  function look () {
    timer = undefined
    onLook(listAwake())
    beginLooking()
  }

  function listAwake () {
    return [...awake].map(checkLog)
  }

  /** @param {One} one @returns {Log} */
  function checkLog (one) {
    const size = sizeOf(one.file)
    if (size !== one.size) Object.assign(one, { size, quietSince: now() })
    else if (now() - one.quietSince > QUIET_MS) watchSleeping(one)
    return one.log
  }

  /** @param {One} one */
  function watchSleeping (one) {
    try {
      const watcher = watchFile(one.file, { persistent: false }, wakeLog)
      watcher.on('error', wakeLog)
      asleep.set(one, watcher)
      awake.delete(one)
      // Written while it fell asleep.
      if (sizeOf(one.file) !== one.size) wakeLog()
    } catch {
      // ENOENT; ENOSPC: the user may not watch as many files.
      one.quietSince = now() + UNWATCHED_MS
    }

    function wakeLog () {
      asleep.get(one)?.close()
      if (!asleep.delete(one)) return
      one.quietSince = now()
      awake.add(one)
      beginLooking()
      onAwake(one.log)
    }
  }
}

/** @typedef {{ log: Log, file: string, size: number | null, quietSince: number }} One */

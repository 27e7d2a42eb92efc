import { watch, type FSWatcher } from 'node:fs'
import { liveFile, sizeOf, type Log } from './log-files.ts'

/** How much a log may grow unseen. */
const LOOK_EVERY_MS = 200
/** Without anything new for so long a log is left to the system, which tells of the next line. */
const QUIET_MS = 2000
/** How long it is looked at all the same, where the system cannot. */
const UNWATCHED_MS = 60_000

/** Knows which logs are being written, so that nobody has to look at all of them all the time. */
export function createGrowth (
  { folder, onAwake, onLook = () => {}, now = () => performance.now(), watchFile = watch }: {
    folder: string,
    /** one that was quiet is written again */
    onAwake: (log: Log) => void,
    /** hears of those that may have grown, while there are some */
    onLook?: (logs: Log[]) => void,
    /** monotonic, ms */
    now?: () => number,
    watchFile?: typeof watch
  }
) {
  const awake: Set<One> = new Set()
  /** those that are quiet */
  const asleep: Map<One, FSWatcher> = new Map()
  let isStarted = false
  /** only while a log is awake */
  let timer: NodeJS.Timeout | undefined

  return {
    start () {
      isStarted = true
      beginLooking()
    },

    /** `log`: is about to be written */
    add (log: Log) {
      const file = liveFile(folder, log)
      awake.add({ log, file, size: sizeOf(file), quietSince: now() })
      beginLooking()
    },

    /** @returns those that may have grown a moment ago */
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

  function checkLog (one: One): Log {
    const size = sizeOf(one.file)
    if (size !== one.size) Object.assign(one, { size, quietSince: now() })
    else if (now() - one.quietSince > QUIET_MS) watchSleeping(one)
    return one.log
  }

  function watchSleeping (one: One) {
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

type One = { log: Log, file: string, size: number | null, quietSince: number }

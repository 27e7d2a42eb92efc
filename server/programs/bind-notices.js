import { readSync, writeSync } from 'node:fs'

/** @typedef {ReturnType<typeof createBindNotices>} BindNotices */
/** @typedef {import('./system-calls.js').Notice} Notice */

const WAKE = Buffer.alloc(8)
WAKE[0] = 1

/**
 * Hears of every bind(2) and listen(2) of the programs that this process looks after. Another thread waits for them, one
 * of libuv's for all programs.
 * @param {import('./system-calls.js').SystemCalls} calls
 */
export function createBindNotices (calls) {
  /** @type {Map<number, { onNotice: (notice: Notice) => void }>} by listener */
  const watched = new Map()
  /** @type {number | null} */
  let wake = null
  let isWaiting = false

  return {
    /**
     * @param {number} listener  a descriptor of this process, which is closed in the end
     * @param {(notice: Notice) => void} onNotice  each has to be answered
     * @returns {() => void} stops; what is asked then has to be answered by somebody else
     */
    watch (listener, onNotice) {
      watched.set(listener, { onNotice })
      waitAnew()
      return function stop () {
        if (!watched.delete(listener)) return
        calls.close(listener)
        waitAnew()
      }
    }
  }

  function waitAnew () {
    if (wake === null) {
      wake = calls.wakeDescriptor()
      // A process does not end before its threads do.
      process.once('exit', wakeThread)
    }
    if (isWaiting) wakeThread()
    else if (watched.size > 0) wait()
  }

  function wakeThread () {
    writeSync(Number(wake), WAKE)
  }

  async function wait () {
    isWaiting = true
    const fds = [...watched.keys()]
    const [, ...asked] = await calls.readable([Number(wake), ...fds]).then((ready) => {
      const isWoken = ready.includes(Number(wake))
      if (isWoken) readSync(Number(wake), Buffer.alloc(8))
      return [null, ...ready.filter((fd) => fd !== wake)]
    })
    isWaiting = false
    for (const listener of asked) hear(Number(listener))
    if (watched.size > 0) wait()
  }

  /** @param {number} listener */
  function hear (listener) {
    const watch = watched.get(listener)
    if (!watch) return
    const notice = calls.receive(listener)
    if (notice === 'over') {
      watched.delete(listener)
      calls.close(listener)
    } else if (notice !== 'none') {
      watch.onNotice(notice)
    }
  }
}

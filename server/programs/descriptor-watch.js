import { readSync, writeSync } from 'node:fs'
import { loadSystemCalls } from './system-calls.js'

const WAKE = Buffer.alloc(8)
WAKE[0] = 1

/** Watches all descriptors that this process waits for. @type {ReturnType<typeof createDescriptorWatch> | undefined} */
let descriptors

/**
 * Calls back when a descriptor can be read that Node has no stream for.
 * @param {number} fd  stays open until it is watched no more
 * @param {() => void} onReadable  has to read it
 * @returns {() => void} watches it no more
 */
export function watchDescriptor (fd, onReadable) {
  descriptors ??= createDescriptorWatch(/** @type {import('./system-calls.js').SystemCalls} */ (loadSystemCalls()))
  return descriptors.watch(fd, onReadable)
}

/**
 * Another thread waits for all of them, one of libuv's.
 * @param {Pick<import('./system-calls.js').SystemCalls, 'wakeDescriptor' | 'readable'>} calls
 */
function createDescriptorWatch (calls) {
  /** @type {Map<number, () => void>} */
  const watched = new Map()
  /** @type {number | null} */
  let wake = null
  let isWaiting = false

  return {
    /** @param {number} fd @param {() => void} onReadable */
    watch (fd, onReadable) {
      watched.set(fd, onReadable)
      waitAnew()
      return function stop () {
        if (watched.get(fd) !== onReadable) return
        watched.delete(fd)
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
    const before = new Map(watched)
    const ready = await calls.readable([Number(wake), ...before.keys()])
    if (ready.includes(Number(wake))) readSync(Number(wake), Buffer.alloc(8))
    for (const fd of ready) {
      const onReadable = watched.get(fd)
      // Another one may have got the number of one that was closed meanwhile.
      if (onReadable && onReadable === before.get(fd)) onReadable()
    }
    isWaiting = false
    if (watched.size > 0) wait()
  }
}

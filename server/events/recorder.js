/** @typedef {import('./stream.js').DeckEvent} DeckEvent */
/** @typedef {ReturnType<typeof createRecorder>} Recorder */
/** @typedef {{ events: readonly DeckEvent[], keep: (event: DeckEvent) => void, clear: () => void }} Spare `events`: of the process before, oldest first */

const RETRY_MIN_MS = 250
const RETRY_MAX_MS = 30_000
// What is kept in memory while the database is away: an hour of a busy cluster, a few tens of megabytes at the most.
const MAX_BUFFERED = 10_000
// Written back per turn of the loop, so that a long outage does not end in a long stall.
const WRITES_PER_TURN = 100

const SWEEP_EVERY_MS = 60 * 60 * 1000
const SWEEP_PAUSE_MS = 50

/** @type {Spare} */
const NO_SPARE = Object.freeze({ events: [], keep () {}, clear () {} })

/**
 * Writes every event to the history in the turn in which it happens. A database that fails never reaches the publisher:
 * events wait in memory, in order, and are written once it works again. It also sweeps the history now and then.
 * @param {object} parts
 * @param {{ record: (event: DeckEvent) => void, sweep: () => { more: boolean }, reopen: () => void, retreat: (reason: string) => void, readonly away: string | null }} parts.history
 * @param {import('./stream.js').EventStream} parts.events
 * @param {Spare} [parts.spare] keeps what waits, in case that this process ends first
 * @param {{ setTimer?: (work: () => void, ms: number) => any, clearTimer?: (timer: any) => void, soon?: (work: () => void) => void, maxBuffered?: number }} [options]
 */
export function createRecorder ({ history, events, spare = NO_SPARE }, { setTimer = unrefTimer, clearTimer = clearTimeout, soon = queueMicrotask, maxBuffered = MAX_BUFFERED } = {}) {
  /** @type {DeckEvent[]} oldest first; only filled while the history is degraded */
  let buffer = [...spare.events]
  let dropped = 0
  let isDegraded = buffer.length > 0 || history.away !== null
  let reason = takeSpare()
  let retryDelayMs = RETRY_MIN_MS
  /** @type {any} */
  let retryTimer = null
  /** @type {any} */
  let sweepTimer = setTimer(sweep, SWEEP_PAUSE_MS)
  const unsubscribe = events.subscribe(record)
  if (history.away !== null) tellDegraded()
  if (isDegraded) retryTimer = setTimer(retry, history.away === null ? 0 : retryDelayMs)

  return {
    /** Why the history cannot be written at the moment; null: it can. @type {string | null} */
    get degraded () { return isDegraded ? reason : null },

    /** Writes what still waits at once, if the history can be written again, and stops listening. The history stays open. */
    async close () {
      if (isDegraded) flushBuffer()
      unsubscribe()
      clearTimer(retryTimer)
      clearTimer(sweepTimer)
    }
  }

  /** Whoever asks this history from now on is to know what has happened before. @returns {string | null} why it cannot be written */
  function takeSpare () {
    if (history.away === null && buffer.length > 0) {
      const error = tryToWrite(buffer.length)
      if (error !== null) history.retreat(reasonOf(error))
    }
    if (history.away !== null) buffer.forEach(showMeanwhile)
    return history.away
  }

  /** @param {DeckEvent} event */
  function record (event) {
    if (isDegraded) {
      hold(event)
      if (history.away !== null) showMeanwhile(event)
      return
    }
    try {
      history.record(event)
    } catch (error) {
      degrade(error, event)
    }
  }

  /** @param {unknown} error @param {DeckEvent} event */
  function degrade (error, event) {
    isDegraded = true
    reason = reasonOf(error)
    hold(event)
    tellDegraded()
    retryLater()
  }

  function tellDegraded () {
    // After this turn's other subscribers have seen the event: what follows from it must not overtake it.
    soon(() => events.publish({
      type: 'history.degraded',
      actor: 'system',
      message: `the history database failed: ${reason}; events are kept in memory until it works again`
    }))
  }

  /** @param {DeckEvent} event */
  function showMeanwhile (event) {
    try {
      history.record(event)
    } catch {
      // It is no worse off than a history that cannot be read.
    }
  }

  /** @param {DeckEvent} event */
  function hold (event) {
    buffer.push(event)
    spare.keep(event)
    if (buffer.length > maxBuffered) {
      buffer.shift()
      dropped++
    }
  }

  function retryLater () {
    retryTimer = setTimer(retry, retryDelayMs)
    retryDelayMs = Math.min(retryDelayMs * 2, RETRY_MAX_MS)
  }

  function retry () {
    const error = writeToFile(WRITES_PER_TURN)
    if (error !== null) {
      reason = reasonOf(error)
      repair(error)
      retryLater()
    } else if (buffer.length > 0) {
      retryTimer = setTimer(retry, 0)
    } else {
      recover()
    }
  }

  function flushBuffer () {
    // The first try may find a file that has to be opened again; the second one writes into it.
    for (let tries = 0; tries < 2; tries++) {
      const error = writeToFile(buffer.length)
      if (error === null) return recover()
      repair(error)
    }
  }

  /**
   * Never writes into the copy that stands in for a file out of reach.
   * @param {number} count @returns {unknown} the error that ended it, null if there was none
   */
  function writeToFile (count) {
    if (history.away !== null) reopen()
    return history.away ?? tryToWrite(count)
  }

  /** @param {number} count @returns {unknown} the error that ended it, null if there was none */
  function tryToWrite (count) {
    const batch = buffer.slice(0, count)
    let written = 0
    try {
      for (const event of batch) {
        history.record(event)
        written++
      }
      return null
    } catch (error) {
      return error
    } finally {
      buffer = buffer.slice(written)
    }
  }

  /**
   * A full disk or a lock passes; a damaged or closed file does not, and has to be opened anew.
   * @param {unknown} error
   */
  function repair (error) {
    if (history.away !== null || /^SQLITE_(BUSY|LOCKED|FULL)/.test(String(/** @type {any} */ (error)?.code))) return
    reopen()
  }

  function reopen () {
    try {
      history.reopen()
    } catch {
      // Still out of reach: the next retry comes by here again, and the first reason has been told.
    }
  }

  function recover () {
    const lost = dropped
    isDegraded = false
    dropped = 0
    retryDelayMs = RETRY_MIN_MS
    spare.clear()
    events.publish({
      type: 'history.recovered',
      actor: 'system',
      message: lost === 0 ? 'the history database works again, nothing was lost' : `the history database works again, ${lost} events were lost`,
      detail: { lost }
    })
  }

  function sweep () {
    let more = false
    try {
      more = !isDegraded && history.sweep().more
    } catch {
      // Forgetting can wait; the next event that cannot be written will say what is wrong.
    }
    sweepTimer = setTimer(sweep, more ? SWEEP_PAUSE_MS : SWEEP_EVERY_MS)
  }
}

/** A timer that does not keep the process alive. */
function unrefTimer (/** @type {() => void} */ work, /** @type {number} */ ms) {
  return setTimeout(work, ms).unref()
}

/** @param {unknown} error */
function reasonOf (error) {
  if (!(error instanceof Error)) return String(error)
  const code = /** @type {any} */ (error).code
  return code ? `${error.message} (${code})` : error.message
}

import { attempt, errorCode, errorText } from '../errors.ts'
import { lossText, NO_LOSS, sumOf, withEvent, type Loss } from './loss.ts'
import type { DeckEvent, EventStream } from './stream.ts'
import type { HistoryState } from '../api/shapes.ts'

export type { HistoryState }
/** `events`: of an earlier process, oldest first */
export type Spare = { events: readonly DeckEvent[], keep: (event: DeckEvent) => void, clear: () => void }

const RETRY_MIN_MS = 250
const RETRY_MAX_MS = 30_000
// An hour of events of a busy cluster, a few tens of megabytes at most.
const MAX_BUFFERED = 10_000
// More would block the loop after a long outage.
const WRITES_PER_TURN = 100

const SWEEP_EVERY_MS = 60 * 60 * 1000
const SWEEP_PAUSE_MS = 50

export const WRITTEN: HistoryState = Object.freeze({ problem: null, since: null, waiting: 0, lost: 0 })

const NO_SPARE: Spare = Object.freeze({ events: [], keep () {}, clear () {} })

/**
 * Writes every event to the history at once. If the database fails, no publisher notices: events wait in memory, in
 * order, until it works again. It also sweeps the history now and then.
 */
export function createRecorder ({ history, events, spare = NO_SPARE }: {
  history: { record: (event: DeckEvent) => void, sweep: () => { more: boolean }, reopen: (error?: unknown) => void,
    retreat: (reason: string) => void, readonly away: string | null, readonly movedAside: string | null,
    readonly loss: Loss | null },
  events: EventStream,
  /** keeps the waiting events if this process ends first */
  spare?: Spare
}, { setTimer = (work, ms) => setTimeout(work, ms).unref(), clearTimer = clearTimeout, soon = (work) => {
  Promise.resolve().then(work)
}, maxBuffered = MAX_BUFFERED }: { setTimer?: (work: () => void, ms: number) => NodeJS.Timeout | number,
  clearTimer?: (timer: NodeJS.Timeout | number | undefined) => void, soon?: (work: () => void) => void,
  maxBuffered?: number } = {})
{
  /** oldest first; only filled while the history is degraded */
  let buffer: DeckEvent[] = [...spare.events]
  /** When the first event was held back. */
  let since: string | null = buffer[0]?.at ?? null
  /** What was too much to be kept. */
  let dropped = NO_LOSS
  /** That of a damaged file is told once. */
  let toldLoss: Loss | null = null
  /** With what the file has failed since it was opened again. */
  let reopenedFor: string | null = null
  let isDegraded = buffer.length > 0 || history.away !== null
  let reason = takeSpare()
  let retryDelayMs = RETRY_MIN_MS
  let retryTimer: NodeJS.Timeout | number | undefined
  let sweepTimer = setTimer(sweep, SWEEP_PAUSE_MS)
  const unsubscribe = events.subscribe(record)
  if (isDegraded) retryTimer = setTimer(retry, history.away === null ? 0 : retryDelayMs)

  return {
    get state () {
      return isDegraded ? { problem: reason, since, waiting: buffer.length, lost: dropped.lost ?? 0 } : WRITTEN
    },

    /** Tells how the database was found. By now others subscribe, as alerts and the terminal. */
    begin () {
      if (history.away !== null) tellDegraded()
      else if (!isDegraded && history.loss !== null) tellRecovered()
    },

    /** Tries once more to write what waits, and stops listening. The history stays open. */
    async close () {
      if (isDegraded) flushBuffer()
      unsubscribe()
      clearTimer(retryTimer)
      clearTimer(sweepTimer)
    }
  }

  /**
   * The events of the earlier process have to be in the history before anybody reads it.
   * @returns why it cannot be written
   */
  function takeSpare (): string | null {
    if (history.away === null && buffer.length > 0) {
      const error = tryToWrite(buffer.length)
      if (error !== null) history.retreat(reasonOf(error))
    }
    if (history.away !== null) buffer.forEach(showMeanwhile)
    return history.away
  }

  function record (event: DeckEvent) {
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

  function degrade (error: unknown, event: DeckEvent) {
    isDegraded = true
    reason = reasonOf(error)
    hold(event)
    tellDegraded()
    retryLater()
  }

  function tellDegraded () {
    // The other subscribers have to see the first event before this one.
    soon(() =>
      events.publish({ type: 'history.degraded', actor: 'system',
        message: `the history database failed: ${reason}; events are kept in memory until it works again` })
    )
  }

  function showMeanwhile (event: DeckEvent) {
    // An event that cannot be written stays in the buffer.
    attempt(() => history.record(event))
  }

  function hold (event: DeckEvent) {
    since ??= event.at
    buffer.push(event)
    spare.keep(event)
    if (buffer.length > maxBuffered) dropOldest()
  }

  function dropOldest () {
    const oldest = buffer.shift()
    if (oldest) dropped = withEvent(dropped, oldest)
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
    // The first try may find that the file has to be opened again.
    for (let tries = 0; tries < 2; tries++) {
      const error = writeToFile(buffer.length)
      if (error === null) return recover()
      repair(error)
    }
  }

  /** Never writes to the copy in memory. Returns the error that ended it, null if there was none. */
  function writeToFile (count: number): unknown {
    if (history.away !== null) reopen()
    return history.away ?? tryToWrite(count)
  }

  /** @returns the error that ended it, null if there was none */
  function tryToWrite (count: number): unknown {
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

  /** A full disk or a lock ends by itself, but a damaged or closed file has to be opened again. */
  function repair (error: unknown) {
    if (history.away !== null || /^SQLITE_(BUSY|LOCKED|FULL)/.test(String(errorCode(error)))) return
    const code = String(errorCode(error))
    reopen(code === reopenedFor ? error : undefined)
    reopenedFor = code
  }

  function reopen (error?: unknown) {
    // The next retry tries it again; the first reason was published.
    attempt(() => history.reopen(error))
  }

  function recover () {
    isDegraded = false
    retryDelayMs = RETRY_MIN_MS
    reopenedFor = null
    spare.clear()
    tellRecovered()
  }

  function tellRecovered () {
    const { loss, movedAside } = history
    const isNew = loss !== null && loss !== toldLoss
    const all = isNew ? sumOf(loss, dropped) : dropped
    const { lost, from, to, types } = all
    const detail = { since, lost, ...(lost !== 0 && { from, to, types }) }
    toldLoss = loss
    since = null
    dropped = NO_LOSS
    const what = isNew ? `was damaged and is kept as ${movedAside}, a new one has begun` : 'works again'
    events.publish({ type: 'history.recovered', actor: 'system',
      message: `the history database ${what}; ${lossText(all)}`, detail })
  }

  function sweep () {
    let more = false
    try {
      more = !isDegraded && history.sweep().more
    } catch {
      // The next event will fail too, and say why.
    }
    sweepTimer = setTimer(sweep, more ? SWEEP_PAUSE_MS : SWEEP_EVERY_MS)
  }
}

function reasonOf (error: unknown) {
  const code = errorCode(error)
  return code ? `${errorText(error)} (${code})` : errorText(error)
}

/** Says whether the charts are live, and why they are empty where they are. */
type Situation = {
  /** the range ends now */
  isLive: boolean,
  isConnected: boolean,
  /** nothing was measured of late */
  isSilent: boolean,
  /** nothing was measured in the range */
  isEmpty: boolean,
  /** the last request was not answered */
  hasFailed: boolean,
  /** the end of the range */
  untilMs: number,
  nowMs: number,
  /** null: all of them */
  slot: number | null,
  /** how long the newest step is, which the headings tell of */
  stepS: number
}

/** The database keeps steps of a minute for as long. */
const KEPT_DAYS = 30
const KEPT_MS = KEPT_DAYS * 24 * 60 * 60_000

/** Of the steps that figures come in. */
const SPANS: Readonly<Record<number, string>> = Object.freeze({ 1: 'second', 10: '10 seconds', 60: 'minute' })

export function liveText ({ isLive, isConnected, isSilent, stepS }: Situation): { text: string, tone: string } {
  if (!isConnected) return { text: 'Not live: no connection', tone: 'warn' }
  if (isLive && isSilent) return { text: 'Live: no worker reports figures now', tone: 'idle' }
  return isLive
    ? { text: `Live: figures of the last ${SPANS[stepS]}`, tone: 'ok' }
    : { text: 'Past time, not live', tone: 'idle' }
}

/** @returns empty: there is something to see */
export function emptyText ({ isLive, isEmpty, hasFailed, untilMs, nowMs, slot }: Situation): string {
  if (!isEmpty) return ''
  if (hasFailed) return 'The figures could not be loaded. The page tries again.'
  if (untilMs < nowMs - KEPT_MS) return `Figures are kept for ${KEPT_DAYS} days; this range is older.`
  return isLive
    ? `The charts begin with the next figures${slot === null ? '' : ` of slot ${slot}`}.`
    : `No worker ran${slot === null ? '' : ` in slot ${slot}`} in this time, or no master was there to measure it.`
}

/** `length`: of time */
export function pointText (length: string): string {
  return length === '1 s'
    ? 'Each point is one second.'
    : `Each point is ${length}, its band from the lowest to the highest.`
}

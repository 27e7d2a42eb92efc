/** An alarm has one of the kinds of server/events/alarms.ts, and the id of its event. */
export interface Alarm {
  id: number
  kind: string
  title: string
  text: string
  url: string
}

/** `parts`: HTML, or the id of a row that the page has already; `hash`: identifies its content */
export interface SentFragment {
  id: string
  parts: (string | { row: string })[]
  hash: string
}

/** What has changed on a page: fragments by id, and figures by their keys. */
export interface Update {
  fragments: SentFragment[]
  figures: Record<string, string>
  vitals?: ChartValues | null
}

/**
 * Vitals for the charts. `time`: seconds since the epoch, ascending; a column for each of CHART_COLUMNS, null: nothing
 * is known.
 */
export interface ChartValues {
  time: number[]
  columns: ((number | null)[] | null)[]
}

/** What the live connection brings to a browser. */
export interface ServerEvents {
  /** `now` sets the clock of the browser; by `url` it ignores changes of a page that it has left. */
  fragments: (update: Update & { now: number, url: string }) => void
  alarm: (alarm: Alarm) => void
  /** `why`: a sentence; null: nobody knows */
  'signed-out': (why: string | null) => void
}

/** What a browser asks for. The server cannot rely on it. */
export interface BrowserEvents {
  /** `known`: hashes of what the page shows, by id */
  watch: (url: string, known: Record<string, string>,
    reply: (state: { version: string, software: string }) => void) => void
  /** `after`: the newest event that the browser knows of */
  notify: (wish: { kinds: string[], after: number | null }, reply: (state: { last: number }) => void) => void
}

import { FAULTS, isOneOf } from './causes.js'

/**
 * What the workers of slots have died of last, or a crash that nobody has resolved or muted.
 * @typedef {object} Reason
 * @property {number[]} slots  that have died of it; none: all of them serve again
 * @property {string} text  one line: hostile, as an app has thrown it
 * @property {number | null} event  of the newest exit, in the history; null: not looked up
 * @property {number | null} crashGroup
 * @property {boolean} isNewInRelease  whether no release before the one that runs has crashed so
 * @typedef {{ history: Pick<import('../db/history.js').History, 'page'>, crashes: Pick<import('./crashes/crashes.js').CrashService, 'group'> }} Sources
 */

/**
 * The open crashes. `open`: how many groups there are; `inRelease`: how many of these have crashed in the release that runs; `isMore`: there are
 * more of them than were counted; `newInRelease`: how many of them have crashed in no release before; `reasons`: the newest ones, new ones first
 * @typedef {{ open: number, inRelease: number, isMore: boolean, newInRelease: number, reasons: Reason[] }} OpenCrashes
 */

/** However many slots there are, a glance costs no more, and shows no more. */
const MAX_SLOTS = 8
const MAX_REASONS = 3
/** So many of a slot's last exits are looked at: planned ones may have come in between. */
const MAX_EXITS = 5
const MAX_CHARS = 240
const MAX_COUNTED = 20

/** @param {number[]} slots @param {Sources} sources @returns {Reason[]} equal ones once; none where the history cannot tell */
export function crashReasons (slots, sources) {
  /** @type {Map<string, Reason>} */
  const reasons = new Map()
  for (const slot of slots.slice(0, MAX_SLOTS)) {
    const reason = attempt(() => lastReason(slot, sources))
    if (!reason) continue
    const key = `${reason.crashGroup} ${reason.crashGroup === null ? reason.text : ''}`
    const known = reasons.get(key)
    if (known) known.slots.push(slot)
    else reasons.set(key, reason)
  }
  return Array.from(reasons.values()).slice(0, MAX_REASONS)
}

/** @param {number} slot @param {Sources} sources @returns {Reason | null} */
function lastReason (slot, { history, crashes }) {
  const exit = history.page({ type: 'worker.exited', slot, limit: MAX_EXITS }).items.find(({ cause }) => isOneOf(FAULTS, cause))
  if (!exit) return null
  const crashGroup = exit.detail?.crashGroup ?? null
  const group = crashGroup === null ? null : attempt(() => crashes.group(crashGroup))
  const { hint } = exit.detail ?? {}
  const why = group ? nameOf(group) : exit.message ?? String(exit.cause)
  // It is ours, and is shown as a whole.
  const text = hint ? `${toLine(why.replace(`; ${hint}`, ''))}; ${hint}` : toLine(why)
  return { slots: [slot], text, event: exit.id, crashGroup: group ? crashGroup : null, isNewInRelease: group?.isNewInRelease ?? false }
}

/**
 * @param {string} release  that runs @param {{ crashes: Pick<import('./crashes/crashes.js').CrashService, 'counts' | 'page'> }} sources
 * @returns {OpenCrashes | null} null: the database cannot tell
 */
export function openCrashes (release, { crashes }) {
  return attempt(() => {
    const { open } = crashes.counts()
    if (open === 0) return { open, inRelease: 0, isMore: false, newInRelease: 0, reasons: [] }
    const { items, next } = crashes.page({ state: 'open', release, limit: MAX_COUNTED })
    const fresh = items.filter(({ isNewInRelease }) => isNewInRelease)
    const reasons = [...fresh, ...items.filter((group) => !group.isNewInRelease)].slice(0, MAX_REASONS)
      .map((group) => ({ slots: [], text: toLine(nameOf(group)), event: null, crashGroup: group.id, isNewInRelease: group.isNewInRelease }))
    return { open, inRelease: items.length, isMore: next !== null, newInRelease: fresh.length, reasons }
  })
}

/** @param {{ errorName: string | null, message: string | null, kind: string, culprit: string | null }} group */
function nameOf ({ errorName, message, kind, culprit }) {
  const [what] = (message ?? '').split('\n', 1)
  return `${[errorName, what].filter(Boolean).join(': ') || kind}${culprit ? `, in ${culprit}` : ''}`
}

/** @param {string} text */
function toLine (text) {
  const [line] = text.split('\n', 1)
  return line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS - 1)}…` : line
}

/** A broken history must not take the verdict down with it. @template T @param {() => T} work @returns {T | null} */
function attempt (work) {
  try {
    return work()
  } catch {
    return null
  }
}

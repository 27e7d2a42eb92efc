import { FAULTS, isOneOf } from './causes.js'

/**
 * What the workers of slots have died of last.
 * @typedef {object} Reason
 * @property {number[]} slots  that have died of it
 * @property {string} text  one line: hostile, as an app has thrown it
 * @property {number} event  of the newest exit, in the history
 * @property {number | null} crashGroup
 * @typedef {{ history: Pick<import('../db/history.js').History, 'page'>, crashes: Pick<import('./crashes/crashes.js').CrashService, 'group'> }} Sources
 */

/** However many slots there are, a glance costs no more, and shows no more. */
const MAX_SLOTS = 8
const MAX_REASONS = 3
/** Of a slot's last exits; planned ones may have come in between. */
const MAX_EXITS = 5
const MAX_CHARS = 240

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
  return { slots: [slot], text: toLine(group ? nameOf(group) : exit.message ?? String(exit.cause)), event: exit.id, crashGroup: group ? crashGroup : null }
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

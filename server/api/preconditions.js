import { z } from 'zod'
import { OWNER } from '../config/actor-names.js'
import { DeckError } from '../errors.js'

/**
 * If two people change the same thing, the second one is refused until they have seen the first change.
 * @typedef {Pick<import('../../db/history.js').History, 'page'>} Past
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 */

/** RFC 9110, 8.8.3: all tags here are strong. */
const TAG = /(?:W\/)?"[\x21\x23-\x7e]*"/g

export const IF_MATCH = z.string().describe('the `ETag` of the state that you have seen, or `*` for any')

/** @param {string | number} state of what is answered @returns {string} its ETag */
export function tagOf (state) {
  return `"${state}"`
}

/**
 * @param {import('./endpoint.js').Request} req
 * @param {string | number} now  the state of what there is
 * @param {{ isRequired: boolean, change?: () => string }} how  `change`: who has changed it, as a sentence without its point
 * @throws {DeckError} precondition-required, precondition-failed
 */
export function checkMatch ({ headers }, now, { isRequired, change }) {
  const wanted = headers['if-match']
  if (wanted === undefined && isRequired) throw new DeckError('precondition-required', 'If-Match: expected the ETag of a GET, received nothing')
  if (wanted === undefined || wanted.trim() === '*' || wanted.match(TAG)?.includes(tagOf(now))) return
  const why = change ? `${change()}. ` : ''
  throw new DeckError('precondition-failed', `${why}If-Match: expected ${tagOf(now)}, received ${JSON.stringify(wanted.slice(0, 100))}; read the current state first`)
}

/**
 * The same for a form, which sends the state that it has shown. It gets the state of now, to send it if its reader confirms.
 * @param {unknown} seen  undefined: the form shows none
 * @param {string | number} now @param {() => string} change  see checkMatch()
 * @throws {DeckError} precondition-failed
 */
export function checkSeen (seen, now, change) {
  if (seen === undefined || seen === String(now)) return
  throw new DeckError('precondition-failed', change(), { details: { now: String(now) } })
}

/**
 * @param {Past} history @param {readonly string[]} types  of events
 * @returns {DeckEvent | null} the newest of them; null: the history has none, or is away
 */
export function lastOf (history, types) {
  return newestOf(history, types, () => true, 1)
}

/**
 * The same, of one thing among several.
 * @param {Past} history @param {readonly string[]} types @param {(event: DeckEvent) => boolean} isAbout @param {number} [limit]
 * @returns {DeckEvent | null} null: it is not among the last of these types, or the history is away
 */
export function newestOf (history, types, isAbout, limit = 50) {
  try {
    return history.page({ type: [...types], limit }).items.find(isAbout) ?? null
  } catch {
    // The refusal is right without a name, too.
    return null
  }
}

/** @param {{ actor: string | null } | null} [event] @returns {string} who did it, to begin a sentence */
export function doerOf (event) {
  if (!event?.actor) return 'Somebody'
  return event.actor === OWNER ? "The owner's token" : event.actor
}

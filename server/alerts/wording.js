import { kindOf } from '../events/kinds.js'
import { sentenceOf } from '../events/sentences.js'

/**
 * The wording of an alert, before a service gives it its form. Text, host and names are hostile: apps throw the one, and
 * people choose the others.
 * @typedef {object} Wording
 * @property {string} title
 * @property {string} text
 * @property {string[]} facts
 * @property {string} at  ISO 8601
 * @property {string | null} url  of the event on the dashboard; null: nobody has said where that is
 * @property {import('../events/kinds.js').Tone} tone
 *
 * @typedef {object} Sender
 * @property {string} host
 * @property {string} app  its name
 * @property {string | null} url  of the dashboard
 */

const MAX_TITLE = 140
const MAX_TEXT = 1500

/** @param {import('../events/stream.js').DeckEvent} event @param {Sender} sender @returns {Wording} */
export function wordingOf (event, { host, app, url }) {
  const { label, tone } = kindOf(event)
  const { worker, slot, release, rollout, actor } = event
  return {
    title: cut(oneLine(`${app}: ${label}`), MAX_TITLE),
    text: cut(readable(withoutStart(sentenceOf(event), `${label}: `)), MAX_TEXT),
    facts: [
      `Host ${host}`,
      ...(release === null ? [] : [`Release ${release}`]),
      ...(worker === null ? [] : [slot === null ? `Worker ${worker}` : `Worker ${worker} in slot ${slot}`]),
      ...(rollout === null ? [] : [`Rollout ${rollout}`]),
      ...(actor === null || actor === 'system' ? [] : [`By ${actor}`])
    ].map((fact) => cut(oneLine(fact), MAX_TITLE)),
    at: event.at,
    url: url && `${url}/history/${event.id}`,
    tone
  }
}

/** The title says it already. @param {string} text @param {string} start */
function withoutStart (text, start) {
  return text.startsWith(start) ? text.slice(start.length) : text
}

/** Without what a terminal, a mail program or the direction of a text would take for a command. @param {string} text */
function readable (text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => character === '\n' || character === '\t' ? character : ' ')
}

/** @param {string} text */
export function oneLine (text) {
  return readable(text).replace(/\s+/g, ' ').trim()
}

/** @param {string} text @param {number} max */
export function cut (text, max) {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`
}

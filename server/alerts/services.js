import { discordBody, mailBody, slackBody, teamsBody } from './forms.js'
import { createHttpPost } from './http-post.js'
import { createMailPost } from './mail-post.js'
import { createSentryPost } from './sentry-post.js'
import { sentryEvent } from './sentry.js'
import { wordingOf } from './wording.js'

/**
 * What each kind of alert sends, and how.
 * @typedef {import('../config/alert.js').Alert} Target
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {string | { subject: string, text: string }} Content  JSON, or a mail
 * @typedef {import('./sentry.js').Sender & { entry: string, pid: number }} Deck  who sends it
 */

const MAX_TEXT = 16_384

/** @type {Readonly<Record<Target['kind'], (event: DeckEvent, deck: Deck) => Content>>} */
const CONTENTS = Object.freeze({
  slack: (event, deck) => jsonOf(slackBody(wordingOf(event, deck))),
  discord: (event, deck) => jsonOf(discordBody(wordingOf(event, deck))),
  teams: (event, deck) => jsonOf(teamsBody(wordingOf(event, deck))),
  mail: (event, deck) => mailBody(wordingOf(event, deck)),
  sentry: (event, deck) => jsonOf(sentryEvent(event, deck)),
  webhook: eventBody
})

/** @param {Target['kind']} kind @param {DeckEvent} event @param {Deck} deck @returns {Content} */
export function contentOf (kind, event, deck) {
  return CONTENTS[kind](event, deck)
}

/**
 * @param {Target} target @param {{ fetch?: typeof globalThis.fetch }} options
 * @returns {import('./sender.js').Post}
 */
export function createPost (target, options) {
  if (target.kind === 'mail') return createMailPost(/** @type {Parameters<typeof createMailPost>[0]} */ (target))
  if (target.kind === 'sentry') return createSentryPost({ dsn: String(target.dsn) }, options)
  return createHttpPost({ url: String(target.url), secret: target.secret }, options)
}

/** @param {DeckEvent} event @param {Deck} deck */
function eventBody (event, { host, entry, pid, version }) {
  const deck = { host, app: entry, pid, version }
  const whole = jsonOf({ event, deck })
  // The detail of a rollout can be long. The receiver can ask the API for the whole event by its id.
  if (whole.length <= MAX_TEXT) return whole
  return jsonOf({ event: { ...event, message: event.message?.slice(0, 2000) ?? null, detail: null }, deck })
}

/** Strict parsers refuse a message with half of a surrogate pair, which an app may write, or which is left where a text was cut. @param {object} body */
function jsonOf (body) {
  return JSON.stringify(body, (_, value) => typeof value === 'string' ? value.replace(/\p{Cs}/gu, '\ufffd') : value)
}

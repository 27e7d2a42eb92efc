import { fillTemplate, type PLACEHOLDERS } from '../../public/alert-template.ts'
import { templateText } from '../config/alert-kinds.ts'
import { discordBody, mailBody, slackBody, teamsBody } from './forms.ts'
import { createHttpPost } from './http-post.ts'
import { createMailPost } from './mail-post.ts'
import { createSentryPost, LEVELS, sentryEvent, type Sender } from './sentry.ts'
import { wordingOf } from './wording.ts'
import type { Alert as Target } from '../config/alert.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Post } from './sender.ts'

/** What each kind of alert sends, and how. */
/** JSON, or a mail */
export type Content = string | { subject: string, text: string }
/** who sends it */
export type Deck = Sender & { entry: string, pid: number }

const MAX_TEXT = 16_384

const CONTENTS: Readonly<Record<Target['kind'], (event: DeckEvent, deck: Deck) => Content>> = Object.freeze({
  slack: (event, deck) => jsonOf(slackBody(wordingOf(event, deck))),
  discord: (event, deck) => jsonOf(discordBody(wordingOf(event, deck))),
  teams: (event, deck) => jsonOf(teamsBody(wordingOf(event, deck))),
  mail: (event, deck) => mailBody(wordingOf(event, deck)),
  sentry: (event, deck) => jsonOf(sentryEvent(event, deck)),
  webhook: eventBody
})

export function contentOf ({ kind, body }: Pick<Target, 'kind' | 'body'>, event: DeckEvent, deck: Deck): Content {
  return body === undefined
    ? CONTENTS[kind](event, deck)
    : jsonOf(fillTemplate(templateText(body), templateValues(event, deck)))
}

/** What the placeholders of a body stand for. */
export function templateValues (event: DeckEvent, deck: Sender): Record<typeof PLACEHOLDERS[number], string> {
  const { title, text, url, tone, at } = wordingOf(event, deck)
  return { title, message: text, app: deck.app, host: deck.host, url: url ?? '', type: event.type,
    severity: LEVELS[tone], tone, at, id: String(event.id) }
}

export function createPost (target: Target, options: { fetch?: typeof globalThis.fetch }): Post {
  if (target.kind === 'mail') return createMailPost(target as Parameters<typeof createMailPost>[0])
  if (target.kind === 'sentry') return createSentryPost({ dsn: String(target.dsn) }, options)
  return createHttpPost({ url: String(target.url), secret: target.secret, headers: target.headers }, options)
}

function eventBody (event: DeckEvent, sender: Deck) {
  const { host, app: name, entry, pid, version } = sender
  const { title, text, url } = wordingOf(event, sender)
  const around = { text: `${title}: ${text}`, url, deck: { host, name, app: entry, pid, version } }
  const whole = jsonOf({ ...around, event })
  // The detail of a rollout can be long. The receiver can ask the API for the whole event by its id.
  if (whole.length <= MAX_TEXT) return whole
  return jsonOf({ ...around, event: { ...event, message: event.message?.slice(0, 2000) ?? null, detail: null } })
}

/**
 * Strict parsers refuse a message with half of a surrogate pair, which an app may write, or which is left where a text
 * was cut.
 */
function jsonOf (body: object) {
  return JSON.stringify(body, (_, value) => typeof value === 'string' ? value.replace(/\p{Cs}/gu, '\ufffd') : value)
}

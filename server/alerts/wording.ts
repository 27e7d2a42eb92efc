import { kindOf, type Tone } from '../events/kinds.ts'
import { sentenceOf } from '../events/sentences.ts'
import type { DeckEvent } from '../events/stream.ts'

/**
 * The wording of an alert, before a service gives it its form. Text, host and names are hostile: apps throw the one,
 * and people choose the others.
 */
export type Wording = {
  title: string,
  text: string,
  facts: string[],
  /** ISO 8601 */
  at: string,
  /** of the event on the dashboard; null: nobody has said where that is */
  url: string | null,
  tone: Tone
}
export type Sender = {
  host: string,
  /** its name; of a host as a whole: what stands in its place */
  app: string,
  /** in whose history the event is, where that is not the alert's own: an app; null: the host itself */
  keptBy?: string | null,
  /** it concerns the host with all of its apps */
  isHost?: boolean,
  /** of the dashboard */
  url: string | null,
  /** what is known beside the event itself, a line each */
  storyOf?: (event: DeckEvent) => string[]
}

const MAX_TITLE = 140
const MAX_TEXT = 1500

export function wordingOf (event: DeckEvent, { host, app, url, storyOf = () => [] }: Sender): Wording {
  const { label, tone } = kindOf(event)
  const { worker, slot, release, rollout, actor } = event
  return { title: cut(oneLine(`${app}: ${label}`), MAX_TITLE),
    text: cut(readable([withoutStart(sentenceOf(event), `${label}: `), ...storyOf(event)].join('\n')), MAX_TEXT),
    facts: [`Host ${host}`, ...(release === null ? [] : [`Release ${release}`]),
      ...(worker === null ? [] : [slot === null ? `Worker ${worker}` : `Worker ${worker} in slot ${slot}`]),
      ...(rollout === null ? [] : [`Rollout ${rollout}`]),
      ...(actor === null || actor === 'system' ? [] : [`By ${actor}`])].map((fact) => cut(oneLine(fact), MAX_TITLE)),
    at: event.at, url: url && `${url}/history/${event.id}`, tone }
}

/** The title says it already. */
function withoutStart (text: string, start: string) {
  return text.startsWith(start) ? text.slice(start.length) : text
}

/** Without what a terminal, a mail program or the direction of a text would take for a command. */
function readable (text: string) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => character === '\n' || character === '\t' ? character : ' ')
}

export function oneLine (text: string) {
  return readable(text).replace(/\s+/g, ' ').trim()
}

export function cut (text: string, max: number) {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`
}

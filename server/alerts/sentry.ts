import { kindOf } from '../events/kinds.ts'
import { sendRequest } from './http-post.ts'
import { cut, oneLine, wordingOf } from './wording.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Frame, Sample as Crash } from '../../db/crashes.ts'
import type { Lines } from '../crashes/source-lines.ts'
import type { Post } from './sender.ts'

/**
 * Events in the words of Sentry, which Bugsink and GlitchTip take too:
 * https://develop.sentry.dev/sdk/foundations/transport/envelopes/
 */
/** `lines`: around each frame */
type Evidence = { crash: Crash, lines: (Lines | null)[], fingerprint: string, culprit: string | null }
/** `environment`: as the app calls it, such as production; `evidenceOf`: of the crash that an event tells of */
export type Sender = import('./wording.ts').Sender & { version: string, environment?: string | null,
  evidenceOf?: (event: DeckEvent) => Evidence | null }

const MAX_TEXT = 8192
/** Sentry drops a longer tag. */
const MAX_TAG = 200
const MAX_LINES = 50
export const LEVELS = Object.freeze({ bad: 'error', warn: 'warning', ok: 'info', info: 'info', drain: 'info',
  idle: 'info' })

/** @returns its payload, all but the id */
export function sentryEvent (event: DeckEvent, sender: Sender): Record<string, unknown> {
  const evidence = sender.evidenceOf?.(event) ?? null
  return { ...commonOf(event, sender), ...(evidence ? crashOf(evidence) : messageOf(event, sender)) }
}

/** Sends an envelope to Sentry, or to what takes the same. */
export function createSentryPost ({ dsn }: { dsn: string }, { fetch }: { fetch?: typeof globalThis.fetch } = {}): Post {
  const { url, key } = receiverOf(dsn)
  return ({ id, content }, how) => {
    // The id is the same for each try, so that Sentry does not count a try twice whose answer was lost.
    const event = { id: id.replace(/\W|^msg_/g, ''), payload: String(content), at: how.time }
    const headers = { 'content-type': 'application/x-sentry-envelope',
      'x-sentry-auth': `Sentry sentry_version=7, sentry_client=clusterdeck, sentry_key=${key}` }
    return sendRequest({ url, headers, body: envelopeOf(event) }, how, fetch)
  }
}

/**
 * @param event `id`: 32 hex digits; `payload`: JSON without it; `at`: wall, ms
 * @returns the envelope: its headers, and one item with headers of its own, a line each
 */
function envelopeOf ({ id, payload, at }: { id: string, payload: string, at: number }): string {
  const item = `{"event_id":"${id}",${payload.slice(1)}`
  return `${JSON.stringify({ event_id: id, sent_at: new Date(at).toISOString() })}\n${
    JSON.stringify({ type: 'event', content_type: 'application/json', length: Buffer.byteLength(item) })
  }\n${item}\n`
}

/** `dsn`: `https://key@host/path/project`. Returns where envelopes go, and who sends them. */
export function receiverOf (dsn: string): { url: string, key: string } {
  const { protocol, host, username, pathname } = new URL(dsn)
  const [, path, project] = /^(.*)\/([^/]+)$/.exec(pathname.replace(/\/$/, '')) as RegExpExecArray
  return { url: `${protocol}//${host}${path}/api/${project}/envelope/`, key: decodeURIComponent(username) }
}

function commonOf ({ id, type, cause, slot, worker, release }: DeckEvent,
  { host, app, version, url, environment }: Sender)
{
  const tags = { app, 'clusterdeck.event': type, cause, slot, worker }
  return { platform: 'other', logger: 'clusterdeck', server_name: host, sdk: { name: 'clusterdeck', version },
    tags: Object.fromEntries(
      Object.entries(tags).filter(([, value]) => value !== null).map((
        [name, value]
      ) => [name, cut(oneLine(String(value)), MAX_TAG)])
    ), ...(release && { release: `${app}@${release}` }), ...(environment && { environment }),
    ...(url && { extra: { clusterdeck: `${url}/history/${id}` } }) }
}

function messageOf (event: DeckEvent, sender: Sender) {
  const { title, text } = wordingOf(event, sender)
  return { timestamp: event.at, level: LEVELS[kindOf(event).tone], logentry: { formatted: `${title}: ${text}` },
    fingerprint: ['clusterdeck', sender.app, event.type, String(event.cause)] }
}

function crashOf ({ crash, lines, fingerprint, culprit }: Evidence) {
  const { at, kind, code, signal, pid, rollout, uptimeMs, nodeVersion, errorName, errorMessage, causes, requests,
    memory, stderr, frames } = crash
  const thrown = {
    type: errorName ?? signal ?? kind,
    value: cut(errorMessage ?? `ended by ${signal ?? `code ${code}`}`, MAX_TEXT),
    mechanism: { type: kind, handled: false },
    // Sentry has the innermost frame last.
    ...(frames.length > 0 &&
      { stacktrace: { frames: frames.map((frame, index) => toFrame(frame, lines[index])).reverse() } })
  }
  return {
    timestamp: at,
    level: 'fatal',
    platform: nodeVersion === null ? 'other' : 'node',
    // Sentry groups crashes as the dashboard does.
    fingerprint: [fingerprint],
    ...(culprit && { transaction: culprit }),
    // What was thrown comes last, after its causes.
    exception: {
      values: [
        ...causes.map(({ errorName, errorMessage }) => ({ type: errorName, value: cut(errorMessage, MAX_TEXT) }))
          .reverse(),
        thrown
      ]
    },
    contexts: { ...(nodeVersion && { runtime: { name: 'node', version: nodeVersion } }),
      worker: { code, signal, pid, rollout, uptimeMs, ...memory },
      end: { requests: requests.map(({ method, path, ageMs }) => `${method} ${path} for ${ageMs} ms`),
        stderr: stderr.slice(-MAX_LINES) } }
  }
}

function toFrame ({ function: name, file, line, column, isInApp }: Frame, lines: Lines | null | undefined) {
  const at = lines?.findIndex(({ number }) => number === line) ?? -1
  const source = lines?.map(({ text }) => text) ?? []
  return { ...(name !== null && { function: name }), filename: file ?? '<unknown>',
    ...(line !== null && { lineno: line }), ...(column !== null && { colno: column }), in_app: isInApp,
    ...(at !== -1 &&
      { pre_context: source.slice(0, at), context_line: source[at], post_context: source.slice(at + 1) }) }
}

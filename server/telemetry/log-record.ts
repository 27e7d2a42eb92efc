import { attempt } from '../errors.ts'
import { kindOf } from '../events/kinds.ts'
import { sentenceOf } from '../events/sentences.ts'
import { levelOf, type Level } from '../../public/log-levels.ts'
import type { DeckEvent } from '../events/stream.ts'

/** What collectors of logs get. */
export type LogRecord = {
  /** ms since the epoch */
  at: number,
  level: Level,
  text: string,
  /** its type; null: a line that a worker has written */
  event: string | null,
  attributes: Record<string, string | number>,
  /** null: the line names none */
  trace: { traceId: string, spanId: string | null } | null
}

const LEVEL_BY_TONE = Object.freeze({ bad: 'error', warn: 'warn' } as Record<string, LogRecord['level']>)
/** The fields of an event that become attributes. */
const FIELDS = ['id', 'cause', 'slot', 'worker', 'release', 'rollout', 'actor', 'code', 'signal', 'uptimeMs'] as const
/** A longer line is not worth the time to parse it. */
const MAX_JSON_CHARS = 64 * 1024
const MAX_TEXT_CHARS = 64 * 1024
/** The names that loggers use: those of OpenTelemetry, of the instrumentations of pino and winston, and of ECS. */
const TRACE_NAMES = ['trace_id', 'traceId', 'trace.id']
const SPAN_NAMES = ['span_id', 'spanId', 'span.id']
const TRACE_ID = /^(?!0{32})[0-9a-f]{32}$/
const SPAN_ID = /^(?!0{16})[0-9a-f]{16}$/

export function eventRecord (event: DeckEvent): LogRecord {
  const { at, type, pid } = event
  const known = FIELDS.flatMap((name) =>
    event[name] === null ? [] : [[`clusterdeck.${name === 'id' ? 'event.id' : snakeCase(name)}`, event[name]]]
  )
  return { at: Date.parse(at), level: LEVEL_BY_TONE[kindOf(event).tone] ?? 'info', text: sentenceOf(event), event: type,
    attributes: { ...Object.fromEntries(known), ...pid !== null && { 'process.pid': pid }, ...crashOf(event) },
    trace: null }
}

function crashOf ({ detail }: DeckEvent): LogRecord['attributes'] {
  const { crash, crashGroup, errorName } = detail ?? {}
  return { ...typeof crash === 'number' && { 'clusterdeck.crash': crash },
    ...typeof crashGroup === 'number' && { 'clusterdeck.crash_group': crashGroup },
    ...typeof errorName === 'string' && { 'exception.type': errorName } }
}

export function lineRecord (
  { slot, stream, text, at }: { slot: number, stream: 'stdout' | 'stderr', text: string, at: number }
): LogRecord {
  return { at, level: levelOf(text, stream), text: text.slice(0, MAX_TEXT_CHARS), event: null,
    attributes: { 'clusterdeck.slot': slot, 'log.iostream': stream }, trace: traceOf(text) }
}

function traceOf (text: string): LogRecord['trace'] {
  if (text[0] !== '{' || text.length > MAX_JSON_CHARS || !text.includes('trace')) return null
  // SyntaxError: the line only begins like JSON.
  return attempt(() => {
    const fields = JSON.parse(text)
    const traceId = TRACE_NAMES.map((name) => fields[name]).find((id) => typeof id === 'string' && TRACE_ID.test(id))
    const spanId = SPAN_NAMES.map((name) => fields[name]).find((id) => typeof id === 'string' && SPAN_ID.test(id))
    return traceId === undefined ? null : { traceId, spanId: spanId ?? null }
  })
}

function snakeCase (name: string) {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

import { z } from 'zod'
import { MEMBER_NAME } from '../config/member-name.ts'
import { appKey } from './app-key.ts'
import { isShallow, parseUntrusted, textUpTo } from './untrusted-json.ts'
import { natsCode, streamExists } from './streams.ts'
import type { JetStreamManager, StreamConfig } from '@nats-io/jetstream'

/**
 * The stream of a fleet's events: a message for each event of each member, in the order in which NATS got them. Anybody
 * with access to NATS can write there, so a message of another shape is ignored.
 */
type Names = { events: string, subject: string }
export type Message = z.infer<typeof MESSAGE>

const DAY_MS = 24 * 60 * 60_000
const MAX_AGE_MS = 30 * DAY_MS
const MAX_MESSAGES = 500_000
/** A small disk gets the smaller stream, so that the buckets have room. */
const MAX_BYTES = [256, 64].map((megabytes) => megabytes * 1024 * 1024)
const DUPLICATES_MS = 2 * 60_000
export const MAX_MESSAGE_BYTES = 128 * 1024
const NS_PER_MS = 1_000_000
/** 10047 means insufficient storage resources, 10005 no suitable peers for placement. */
const NO_ROOM = new Set([10047, 10005])

export const TYPE = /^[a-z]{1,30}(\.[a-z-]{1,60})?$/
const SOURCE = /^[\da-f]{1,64}$/
const number = z.int().nullable()

const EVENT = z.object({ id: z.int().min(1), at: z.iso.datetime().max(40), type: z.string().regex(TYPE),
  cause: textUpTo(200).nullable(), slot: number, worker: number, pid: number, release: textUpTo(200).nullable(),
  rollout: number, actor: textUpTo(200).nullable(), code: number, signal: textUpTo(200).nullable(), uptimeMs: number,
  message: textUpTo(2000).nullable(), detail: z.record(z.string(), z.unknown()).nullable().refine(isShallow) })

const MESSAGE = z.object({ source: z.string().regex(SOURCE).describe('of the history in which the event has this id'),
  member: z.string().regex(MEMBER_NAME), app: textUpTo(200), host: textUpTo(255), event: EVENT })

/** Makes the stream if it is missing. What an operator has changed in an existing one stays. */
export async function makeEventStream (manager: JetStreamManager, { events, subject }: Names, replicas: number) {
  if (await streamExists(manager, events)) return
  const config: Partial<StreamConfig> & { name: string } = { name: events, subjects: [`${subject}.*.event.>`],
    storage: 'file', discard: 'old', num_replicas: replicas, max_age: MAX_AGE_MS * NS_PER_MS, max_msgs: MAX_MESSAGES,
    max_msg_size: MAX_MESSAGE_BYTES, duplicate_window: DUPLICATES_MS * NS_PER_MS }
  for (const maxBytes of MAX_BYTES) {
    try {
      await manager.streams.add({ ...config, max_bytes: maxBytes })
      return
    } catch (error) {
      if (!NO_ROOM.has(Number(natsCode(error))) || maxBytes === MAX_BYTES.at(-1)) throw error
    }
  }
}

export function subjectOf ({ subject }: Names,
  { member, app, source, type }: { member: string, app: string, source: string, type: string })
{
  return `${subject}.${member}.event.${appKey(app)}.${source}.${TYPE.test(type) ? type : 'unexpected'}`
}

/** The member of a history may have changed its name, and so may its app. */
export function subjectsOfSource ({ subject }: Names, source: string) {
  return `${subject}.*.event.*.${source}.>`
}

/** `type`: `worker.exited`, or `worker.*` */
export function subjectsOf ({ subject }: Names,
  { member = '*', app, type }: { member?: string, app?: string, type?: string } = {})
{
  return `${subject}.${member}.event.${app === undefined ? '*' : appKey(app)}.*.${type?.replace(/\*$/, '>') ?? '>'}`
}

/** `subject`: of a message. Returns '' where it is none. */
export function typeOf ({ subject: fleet }: Names, subject: string): string {
  return subject.startsWith(`${fleet}.`) ? subject.slice(fleet.length + 1).split('.').slice(4).join('.') : ''
}

/** Null: it is none, or of another one than it says */
export function messageOf (names: Names, message: { subject: string, data: Uint8Array, json: () => unknown }):
  | Message
  | null
{
  const found = message.data.length > MAX_MESSAGE_BYTES ? null : parseUntrusted(MESSAGE, () => message.json())
  return found && message.subject === subjectOf(names, { ...found, type: found.event.type }) ? found : null
}

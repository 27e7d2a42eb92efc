import { z } from 'zod'
import { APP_STATES } from '../config/app-states.ts'
import { LABEL_NAME, MEMBER_NAME } from '../config/member-name.ts'
import { isoTime, parseUntrusted, textUpTo } from './untrusted-json.ts'
import { MAX_ID } from './rollout.ts'
import type { KvEntry } from '@nats-io/kv'

/**
 * The status that a member reports: of its host, and of each of its apps. Anybody with access to NATS can write one, so
 * another shape is ignored.
 */
export type MemberStatus = z.infer<typeof MEMBER_STATUS>
export type AppStatus = z.infer<typeof APP_STATUS>

const MAX_BYTES = 256 * 1024
/** More would not fit into one message. */
export const MAX_APPS = 200

const count = z.int().min(0)
const figure = z.number().nullable()

const APP_STATUS = z.object({
  app: textUpTo(200),
  state: z.enum(APP_STATES).describe('as in the list of apps of its host'),
  release: textUpTo(50).nullable(),
  // Members of an earlier version do not say it.
  code: z.object({ version: textUpTo(100).nullable(), commit: textUpTo(50).nullable() }).nullable().default(null)
    .describe('what it runs, since each deck numbers its own releases'),
  workers: z.object({ ready: count, desired: count }),
  health: z.object({ tone: z.enum(['ok', 'info', 'drain', 'warn', 'bad', 'idle']), text: textUpTo(500) }),
  vitals: z.object({ requestsPerSecond: figure, latencyP99Ms: figure }),
  openCrashes: count.nullable(),
  unwritten: z.object({ problem: textUpTo(500), since: isoTime.nullable() }).nullable().default(null).describe(
    'why its history cannot be written now, and the first event that it lacks'
  ),
  rollout: z.object({ id: count, kind: textUpTo(20), state: textUpTo(20), replaced: count, total: count }).nullable()
    .describe('its own'),
  turnOf: textUpTo(64).nullable().describe('the uid of the rollout of the fleet in whose turn it is'),
  seen: z.object({ rollout: count.max(MAX_ID), revision: count }).describe(
    'the newest rollout of the fleet that it knows'
  ),
  url: textUpTo(2000).regex(/^https?:\/\//).nullable().describe('of its admin page, for people')
})

export const MEMBER_STATUS = z.object({ member: z.string().regex(MEMBER_NAME),
  home: textUpTo(64).describe('of its data folder: two with one name are told apart by it'),
  boot: textUpTo(64).describe('of its master'), host: textUpTo(255), version: textUpTo(50).describe('of clusterdeck'),
  labels: z.record(z.string().regex(LABEL_NAME), textUpTo(200)),
  url: textUpTo(2000).regex(/^https?:\/\//).nullable().describe('of its admin page, for people'),
  accept: z.enum(['nothing', 'read', 'operate']).describe('what others may do to it'),
  apps: z.array(APP_STATUS).max(MAX_APPS) })

/** Null: it is none, or of another member */
export function readMemberStatus (entry: KvEntry): MemberStatus | null {
  const status = entry.length > MAX_BYTES ? null : parseUntrusted(MEMBER_STATUS, () => entry.json())
  return status?.member === entry.key ? status : null
}

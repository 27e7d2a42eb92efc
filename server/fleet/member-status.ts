import { z } from 'zod'
import { APP_STATES } from '../config/app-states.ts'
import { LABEL_NAME, MEMBER_NAME } from '../config/member-name.ts'
import { MAX_ID } from './document.ts'
import { parseUntrusted, textUpTo, time } from './untrusted-json.ts'
import type { KvEntry } from '@nats-io/kv'

/**
 * The status that a member reports: of its host, and of each of its apps; the API answers it. Anybody with access to
 * NATS can write one, so another shape is ignored.
 */
export type MemberStatus = z.infer<typeof MEMBER_STATUS>
export type AppStatus = z.infer<typeof APP_STATUS>

const MAX_BYTES = 256 * 1024
/** More would not fit into one message. */
export const MAX_APPS = 200

const count = z.int().min(0)
const figure = z.number().nullable()
const url = textUpTo(2000).regex(/^https?:\/\//).meta({ examples: ['https://web-1.example.com:9800'] }).nullable()
  .describe('the address of its admin page, for people')

export const APP_STATUS = z.object({ app: textUpTo(200),
  state: z.enum(APP_STATES).describe('of the app, as in the list of apps of its host'),
  release: textUpTo(50).nullable().describe('as its host calls it'),
  code: z.object({ version: textUpTo(100).nullable(), commit: textUpTo(50).nullable() }).nullable().describe(
    'the code that it runs, as each host numbers its releases itself'
  ), workers: z.object({ ready: count, desired: count }),
  health: z.object({ tone: z.enum(['ok', 'info', 'drain', 'warn', 'bad', 'idle']), text: textUpTo(500) }),
  vitals: z.object({ requestsPerSecond: figure, latencyP99Ms: figure.describe('milliseconds') }),
  openCrashes: count.nullable(),
  unwritten: z.object({ problem: textUpTo(500), since: time.nullable().describe('the first event that it lacks') })
    .nullable().describe('why its history cannot be written now; null: it can'),
  rollout: z.object({ id: count, kind: textUpTo(20), state: textUpTo(20), replaced: count, total: count }).nullable()
    .describe('its own running rollout; null: none'),
  turnOf: textUpTo(64).nullable().describe('the `uid` of the rollout of the fleet that gave it a turn; null: none'),
  seen: z.object({ rollout: count.max(MAX_ID), revision: count }).describe(
    'the newest rollout of the fleet that it knows'
  ), url })

export const MEMBER_STATUS = z.object({
  member: z.string().regex(MEMBER_NAME).meta({ description: 'of a member', examples: ['web-1'] }),
  home: textUpTo(64).describe('the id of the data folder of its host: it tells two members of the same name apart'),
  boot: textUpTo(64).describe('the id of its master'),
  host: textUpTo(255),
  version: textUpTo(50).describe('the version of clusterdeck'),
  labels: z.record(z.string().regex(LABEL_NAME), textUpTo(200)),
  url,
  accept: z.enum(['nothing', 'read', 'operate']).describe('what other members may do with it'),
  apps: z.array(APP_STATUS).max(MAX_APPS)
})

/** Null: it is none, or of another member */
export function readMemberStatus (entry: KvEntry): MemberStatus | null {
  const status = entry.length > MAX_BYTES ? null : parseUntrusted(MEMBER_STATUS, () => entry.json())
  return status?.member === entry.key ? status : null
}

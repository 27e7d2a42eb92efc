import { z } from 'zod'
import { ROLLOUT } from './document.ts'
import { APP_STATUS, MEMBER_STATUS } from './member-status.ts'
import { COUNT, TIME } from '../api/fields.ts'

/** Answers about a fleet: its members as they report themselves, and its rollouts host by host. */
export type { FleetRollout, Turn as FleetTurn } from './document.ts'
export type Fleet = z.infer<typeof FLEET>
export type HostFleet = z.infer<typeof HOST_FLEET>

const HEARD = { isSilent: z.boolean().describe('no status has arrived from it for 15 s'),
  ageMs: z.number().describe('milliseconds since its last status arrived here'),
  isOwn: z.boolean().describe('this host, which answers the request') }
const mark = z.strictObject({ label: z.enum(['Behind', 'Ahead', 'Other code', 'Waiting', 'In its turn']),
  tone: z.string(), title: z.string().describe('the code that it should run, or the rollout that it is in'),
  isBehind: z.boolean() }).nullable().describe('null: it runs the right code, or this is not known')
const host = MEMBER_STATUS.omit({ apps: true }).shape

const MEMBER = z.strictObject({ ...host, ...APP_STATUS.shape, ...HEARD, mark }).meta({ id: 'FleetMember' })
const APP = z.strictObject({ ...APP_STATUS.shape, mark }).meta({ id: 'FleetHostApp' })
const HOST = z.strictObject({ ...host, ...HEARD, apps: z.array(APP).describe('sorted by name') }).meta({
  id: 'FleetHost'
})

export const FLEET_ROLLOUT = ROLLOUT
export const FLEET_ROLLOUT_SUMMARY = ROLLOUT.omit({ batches: true, turns: true, timeline: true }).extend({
  progress: z.strictObject({ total: COUNT, done: COUNT, failed: COUNT }).describe(
    'numbers of members; on the way back `total` are those that have to go back, and `done` those that are'
  )
}).meta({ id: 'FleetRolloutSummary' })

const SEEN = { name: z.string(), member: host.member.describe('this host, which answers the request'),
  nats: z.strictObject({ isConnected: z.boolean(), since: TIME, server: z.string().nullable(),
    problem: z.string().nullable().describe('why NATS is out of reach, or its last error') }),
  problem: z.string().nullable().describe('why the other members do not see this host; null: they do') }

export const FLEET = z.strictObject({ ...SEEN, app: z.string(),
  outbox: z.strictObject({ waiting: COUNT.nullable(), problem: z.string().nullable() }).describe(
    'how many events of this app the fleet has not received yet; null: not known'
  ), members: z.array(MEMBER).describe('those that have the app, sorted by name'),
  rollout: ROLLOUT.nullable().describe('the newest rollout of this app over the fleet') }).meta({ id: 'Fleet' })

export const HOST_FLEET = z.strictObject({ ...SEEN, members: z.array(HOST).describe('all hosts, sorted by name'),
  rollouts: z.array(FLEET_ROLLOUT_SUMMARY).describe(
    'the newest rollout of each app of this host, sorted by the name of the app'
  ) }).meta({ id: 'HostFleet' })

import { z } from 'zod'
import { APP_STATES } from '../config/app-states.ts'
import { ACTOR, COUNT, NUMBER, TIME } from './fields.ts'

/** Answers about a fleet: its members, and its rollouts host by host. */

const NAME = z.string().meta({ description: 'of a member', examples: ['web-1'] })
const RELEASE = z.string().describe('as its host calls it')

export const MEMBER = z.strictObject({ member: NAME,
  home: z.string().describe('the id of the data folder of its host: it tells two members of the same name apart'),
  boot: z.string().describe('the id of its master'), host: z.string(), app: z.string(),
  state: z.enum(APP_STATES).describe('of the app, as in the list of apps of its host'),
  version: z.string().describe('the version of clusterdeck'), labels: z.record(z.string(), z.string()),
  release: RELEASE.nullable(),
  code: z.strictObject({ version: z.string().nullable(), commit: z.string().nullable() }).nullable().describe(
    'the code that it runs, as each host numbers its releases itself'
  ), workers: z.strictObject({ ready: COUNT, desired: COUNT }),
  health: z.strictObject({ tone: z.enum(['ok', 'info', 'drain', 'warn', 'bad', 'idle']), text: z.string() }),
  vitals: z.strictObject({ requestsPerSecond: z.number().nullable(),
    latencyP99Ms: z.number().nullable().describe('milliseconds') }), openCrashes: COUNT.nullable(),
  unwritten: z.strictObject({ problem: z.string(), since: TIME.nullable().describe('the first event that it lacks') })
    .nullable().describe('why its history cannot be written now; null: it can'),
  rollout: z.strictObject({ id: COUNT, kind: z.string(), state: z.string(), replaced: COUNT, total: COUNT }).nullable()
    .describe('its own running rollout; null: none'),
  turnOf: z.string().nullable().describe('the `uid` of the rollout of the fleet that gave it a turn; null: none'),
  url: z.string().nullable().describe('the address of its admin page, for people'),
  accept: z.enum(['nothing', 'read', 'operate']).describe('what other members may do with it'),
  seen: z.strictObject({ rollout: COUNT, revision: COUNT }).describe('the newest rollout of the fleet that it knows'),
  isSilent: z.boolean().describe('no status has arrived from it for 15 s'),
  ageMs: z.number().describe('milliseconds since its last status arrived here'),
  isOwn: z.boolean().describe('this host, which answers the request'),
  mark: z.strictObject({ label: z.enum(['Behind', 'Ahead', 'Other code']), tone: z.string(),
    title: z.string().describe('the code that it should run'), isBehind: z.boolean() }).nullable().describe(
      'null: it runs the right code, or this is not known'
    ) }).meta({ id: 'FleetMember' })

export type FleetTurn = z.infer<typeof TURN>
const TURN = z.strictObject({
  state: z.enum(['pending', 'running', 'succeeded', 'failed', 'reverting', 'reverted', 'skipped']),
  boot: z.string().nullable().describe('the id of the master that took the turn'),
  rollout: NUMBER.nullable().describe('its own rollout'),
  from: RELEASE.nullable(),
  to: RELEASE.nullable(),
  startedAt: TIME.nullable().describe('by the clock of the member, like all times of its turn'),
  finishedAt: TIME.nullable(),
  reason: z.string().nullable().describe('why it failed, in the words of its host'),
  isLate: z.boolean().describe('it ended after the other members had stopped waiting for it')
}).meta({ id: 'FleetTurn' })

const HEAD = { id: NUMBER,
  uid: z.string().describe('unique, unlike the number, which a NATS server that lost its disk gives again'),
  app: z.string(), kind: z.enum(['restart', 'deploy', 'rollback']),
  source: z.strictObject({ path: z.string().optional(), digest: z.string().optional(), release: z.string().optional() })
    .describe('the code that each member deploys'), pauseMs: COUNT.describe('milliseconds between two batches'),
  deadlineMs: COUNT.describe('the longest time of a turn in milliseconds'), onFailure: z.enum(['hold', 'rollback']),
  state: z.enum(['running', 'paused', 'held', 'rolling-back', 'succeeded', 'failed', 'rolled-back']),
  absent: z.array(NAME).describe('members that were offline, or had stopped the app, at its start and get no turn'),
  actor: ACTOR, note: z.string().nullable(), reason: z.string().nullable().describe('why it is held or failed'),
  startedAt: TIME, finishedAt: TIME.nullable() }

export type FleetRollout = z.infer<typeof FLEET_ROLLOUT>
export const FLEET_ROLLOUT = z.strictObject({ ...HEAD,
  batches: z.array(z.array(NAME)).describe(
    'members in the order of their turns; those of one batch have their turns at the same time'
  ), turns: z.record(z.string(), TURN).describe('the turn of each member'),
  timeline: z.array(
    z.strictObject({ at: TIME, type: z.string(), member: NAME.nullable(), actor: ACTOR.nullable(),
      message: z.string().nullable() })
  ).describe('oldest first, the last 200') }).meta({ id: 'FleetRollout' })

export const FLEET_ROLLOUT_SUMMARY = z.strictObject({ ...HEAD,
  progress: z.strictObject({ total: COUNT, done: COUNT, failed: COUNT }).describe('numbers of members') }).meta({
    id: 'FleetRolloutSummary'
  })

export type Fleet = z.infer<typeof FLEET>
export const FLEET = z.strictObject({ name: z.string(), app: z.string(),
  member: NAME.describe('this host, which answers the request'),
  nats: z.strictObject({ isConnected: z.boolean(), since: TIME, server: z.string().nullable(),
    problem: z.string().nullable().describe('why NATS is out of reach, or its last error') }),
  problem: z.string().nullable().describe('why the other members do not see this host; null: they do'),
  outbox: z.strictObject({ waiting: COUNT.nullable(), problem: z.string().nullable() }).describe(
    'how many events of this app the fleet has not received yet; null: not known'
  ), members: z.array(MEMBER).describe('those that have the app, sorted by name'),
  rollout: FLEET_ROLLOUT.nullable().describe('the newest rollout of this app over the fleet') }).meta({ id: 'Fleet' })

import { z } from 'zod'
import { ACTOR, COUNT, NUMBER, TIME } from './fields.js'

/** Answers about a fleet: its members, and its rollouts host by host. */

const NAME = z.string().meta({ description: 'of a member', examples: ['web-1-shop'] })
const RELEASE = z.string().describe('as its deck calls it')

/** @typedef {z.infer<typeof MEMBER>} FleetMember */
const MEMBER = z.strictObject({
  member: NAME,
  home: z.string().describe('of its data folder: two with one name are told apart by it'),
  boot: z.string().describe('of its master'),
  host: z.string(),
  app: z.string(),
  version: z.string().describe('of clusterdeck'),
  labels: z.record(z.string(), z.string()),
  release: RELEASE.nullable(),
  code: z.strictObject({ version: z.string().nullable(), commit: z.string().nullable() })
    .nullable()
    .describe('what it runs: each deck numbers its releases for itself'),
  workers: z.strictObject({ ready: COUNT, desired: COUNT }),
  health: z.strictObject({ tone: z.enum(['ok', 'info', 'drain', 'warn', 'bad', 'idle']), text: z.string() }),
  vitals: z.strictObject({ requestsPerSecond: z.number().nullable(), latencyP99Ms: z.number().nullable().describe('milliseconds') }),
  openCrashes: COUNT.nullable(),
  rollout: z.strictObject({ id: COUNT, kind: z.string(), state: z.string(), replaced: COUNT, total: COUNT })
    .nullable()
    .describe('its own, while one runs there'),
  turnOf: z.string().nullable().describe('the `uid` of the rollout of the fleet in whose turn it is'),
  url: z.string().nullable().describe('of its admin page, for people'),
  accept: z.enum(['nothing', 'read', 'operate']).describe('what it lets others do'),
  seen: z.strictObject({ rollout: COUNT, revision: COUNT }).describe('the newest rollout of the fleet that it knows'),
  isSilent: z.boolean().describe('it has said nothing for 15 s'),
  ageMs: z.number().describe('milliseconds since its last word came, by the clock of the deck that answers'),
  isOwn: z.boolean().describe('it is the deck that answers'),
  mark: z.strictObject({
    label: z.enum(['Behind', 'Ahead', 'Other code']),
    tone: z.string(),
    title: z.string().describe('what it should have'),
    isBehind: z.boolean()
  })
    .nullable()
    .describe('null: it has the code that it should have, or nobody can tell')
}).meta({ id: 'FleetMember' })

/** @typedef {z.infer<typeof TURN>} FleetTurn */
const TURN = z.strictObject({
  state: z.enum(['pending', 'running', 'succeeded', 'failed', 'reverting', 'reverted', 'skipped']),
  boot: z.string().nullable().describe('of the master that took it'),
  rollout: NUMBER.nullable().describe('of its own deck'),
  from: RELEASE.nullable(),
  to: RELEASE.nullable(),
  startedAt: TIME.nullable().describe('by the clock of the member, as all times of its turn'),
  finishedAt: TIME.nullable(),
  reason: z.string().nullable().describe('why it has failed, as its deck says it'),
  isLate: z.boolean().describe('it has ended after the others had given it up')
}).meta({ id: 'FleetTurn' })

const HEAD = {
  id: NUMBER,
  uid: z.string().describe('of this one alone: a NATS server that has lost its disk gives a number twice'),
  kind: z.enum(['restart', 'deploy', 'rollback']),
  source: z.strictObject({ path: z.string().optional(), digest: z.string().optional(), release: z.string().optional() }).describe('what each member deploys'),
  pauseMs: COUNT.describe('milliseconds between two batches'),
  deadlineMs: COUNT.describe('milliseconds that a turn may take'),
  onFailure: z.enum(['hold', 'rollback']),
  state: z.enum(['running', 'paused', 'held', 'rolling-back', 'succeeded', 'failed', 'rolled-back']),
  absent: z.array(NAME).describe('members that were silent when it began, and have no turn'),
  actor: ACTOR,
  note: z.string().nullable(),
  reason: z.string().nullable().describe('why it was held, or has failed'),
  startedAt: TIME,
  finishedAt: TIME.nullable()
}

/** @typedef {z.infer<typeof FLEET_ROLLOUT>} FleetRollout */
export const FLEET_ROLLOUT = z.strictObject({
  ...HEAD,
  batches: z.array(z.array(NAME)).describe('in the order of their turns; those of one batch are in their turns at the same time'),
  turns: z.record(z.string(), TURN).describe('by member'),
  timeline: z
    .array(z.strictObject({ at: TIME, type: z.string(), member: NAME.nullable(), actor: ACTOR.nullable(), message: z.string().nullable() }))
    .describe('oldest first, the last 200')
}).meta({ id: 'FleetRollout' })

export const FLEET_ROLLOUT_SUMMARY = z.strictObject({
  ...HEAD,
  progress: z.strictObject({ total: COUNT, done: COUNT, failed: COUNT }).describe('members')
}).meta({ id: 'FleetRolloutSummary' })

/** @typedef {z.infer<typeof FLEET>} Fleet */
export const FLEET = z.strictObject({
  name: z.string(),
  member: NAME.describe('the deck that answers'),
  nats: z.strictObject({
    isConnected: z.boolean(),
    since: TIME,
    server: z.string().nullable(),
    problem: z.string().nullable().describe('why it is out of reach, or what went wrong last')
  }),
  problem: z.string().nullable().describe('why this deck is not seen by the others'),
  outbox: z
    .strictObject({ waiting: COUNT.nullable(), problem: z.string().nullable() })
    .describe('events of this deck that the fleet has not been told yet; null: nobody knows'),
  members: z.array(MEMBER).describe('by name'),
  rollout: FLEET_ROLLOUT.nullable().describe('the newest one')
}).meta({ id: 'Fleet' })

import { z } from 'zod'
import { isSomebody } from '../config/actor-names.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { parseUntrusted, textUpTo, time } from './untrusted-json.ts'
import type { KvEntry } from '@nats-io/kv'

/**
 * The rollout of an app over the fleet, as NATS stores it and the API answers it. Anybody with access to NATS can write
 * there, so a document of another shape is ignored.
 */
export type FleetRollout = z.infer<typeof ROLLOUT>
export type Kind = FleetRollout['kind']
export type Turn = z.infer<typeof TURN>
export type Moment = z.infer<typeof MOMENT>
export type Crash = z.infer<typeof CRASH>
type State = FleetRollout['state']
export type Move = 'pause' | 'resume' | 'abort' | 'hold' | 'roll-back' | 'succeed' | 'fail' | 'be-back'

const MAX_BYTES = 900 * 1024
export const MAX_MEMBERS = 2000
/** A higher id is refused: after the highest safe integer no member could start a rollout. */
export const MAX_ID = 1_000_000_000
export const MAX_CRASH_CHARS = 300
export const DIGEST = /^sha256:[0-9a-f]{64}$/

/** The one table of states. A move that is not in the row of a state is refused. `done`: the next rollout may begin. */
export const STATES: Readonly<Record<State, { done: boolean, moves: Partial<Record<Move, State>> }>> = Object.freeze({
  running: { done: false,
    moves: { pause: 'paused', hold: 'held', abort: 'rolling-back', 'roll-back': 'rolling-back', succeed: 'succeeded',
      fail: 'failed' } },
  paused: { done: false,
    moves: { resume: 'running', hold: 'held', abort: 'rolling-back', 'roll-back': 'rolling-back', succeed: 'succeeded',
      fail: 'failed' } },
  held: { done: true, moves: { resume: 'running', abort: 'rolling-back', hold: 'held', 'roll-back': 'rolling-back' } },
  'rolling-back': { done: false, moves: { hold: 'held', 'be-back': 'rolled-back' } },
  succeeded: { done: true, moves: {} },
  failed: { done: true, moves: {} },
  'rolled-back': { done: true, moves: {} }
})

const name = z.string().regex(MEMBER_NAME).meta({ description: 'of a member', examples: ['web-1'] })
const release = textUpTo(50).describe('as its host calls it')
const reason = textUpTo(500).nullable()
/** Of an archive that was pushed. */
export const digest = z.string().regex(DIGEST).meta({ description: 'sha256: and 64 hex digits',
  examples: [`sha256:${'0123456789abcdef'.repeat(4)}`] })

const CRASH = z.object({ group: z.int().min(1).describe('the id of the crash group on that member'),
  fingerprint: textUpTo(100), text: textUpTo(MAX_CRASH_CHARS).describe('what was thrown, and where') })

const TURN = z.object({
  state: z.enum(['pending', 'running', 'succeeded', 'failed', 'reverting', 'reverted', 'skipped']),
  boot: textUpTo(64).nullable().describe('the id of the master that took the turn'),
  rollout: z.int().min(1).nullable().describe('its own rollout'),
  from: release.nullable(),
  to: release.nullable(),
  startedAt: time.nullable().describe('by the clock of the member, like all times of its turn'),
  finishedAt: time.nullable(),
  reason: reason.describe('why it failed, in the words of its host'),
  crash: CRASH.nullable().describe('a crash of the new release that no earlier release had on that member; null: none'),
  isLate: z.boolean().describe('it ended after the other members had stopped waiting for it')
}).meta({ id: 'FleetTurn' })

const MOMENT = z.object({ at: time, type: z.string().regex(/^[a-z-]{1,50}$/), member: name.nullable(),
  actor: textUpTo(200).nullable(), message: textUpTo(500).nullable() })

export const ROLLOUT = z.object({ id: z.int().min(1).max(MAX_ID),
  uid: textUpTo(64).describe('unique, unlike the number, which a NATS server that lost its disk gives again'),
  app: textUpTo(200), kind: z.enum(['restart', 'deploy', 'rollback']),
  source: z.object({ path: textUpTo(4096).optional(), digest: digest.optional(), release: textUpTo(50).optional() })
    .describe('the code that each member deploys'),
  batches: z.array(z.array(name).min(1)).min(1).max(MAX_MEMBERS).describe(
    'members in the order of their turns; those of one batch have their turns at the same time'
  ), pauseMs: z.int().min(0).describe('milliseconds between two batches'),
  deadlineMs: z.int().min(1000).describe('the longest time of a turn in milliseconds'),
  onFailure: z.enum(['hold', 'rollback']),
  state: z.enum(['running', 'paused', 'held', 'rolling-back', 'succeeded', 'failed', 'rolled-back']),
  turns: z.record(name, TURN).describe('the turn of each member'),
  absent: z.array(name).describe('members that were offline, or had stopped the app, at its start and get no turn'),
  actor: z.string().refine(isSomebody).meta({ description: 'who did it', examples: ['ada'] }),
  note: textUpTo(1000).nullable(), reason: reason.describe('why it is held or failed'), startedAt: time,
  finishedAt: time.nullable(), timeline: z.array(MOMENT).min(1).max(200).describe('oldest first, the last 200') }).meta(
    { id: 'FleetRollout' }
  )

const DOCUMENT = ROLLOUT.refine(({ batches, turns }) => {
  const members = batches.flat()
  return members.length <= MAX_MEMBERS && members.length === Object.keys(turns).length &&
    members.every((each) => Object.hasOwn(turns, each))
})

/** Null: it is not possible from there */
export function nextState (state: State, move: Move): State | null {
  return STATES[state].moves[move] ?? null
}

/** Tells whether this member has to roll back when all do */
export function owesReturn ({ kind }: FleetRollout, { state }: Turn): boolean {
  return kind !== 'restart' && state === 'succeeded'
}

/** Why a new crash holds a rollout. */
export function crashText (member: string, { to, crash }: Turn): string {
  return `${member}: new crash in ${to}: ${crash?.text}`
}

/** Tells whether a new crash holds it, and no failure. */
export function isHeldByCrash ({ state, reason, turns }: FleetRollout): boolean {
  return state === 'held' &&
    Object.entries(turns).some(([member, turn]) => turn.crash && crashText(member, turn) === reason)
}

export function isUnderWay ({ state }: Turn) {
  return state === 'running' || state === 'reverting'
}

/** Null: it is none, or of another app */
export function documentOf (entry: KvEntry, app: string): FleetRollout | null {
  const document = entry.operation !== 'PUT' || entry.length > MAX_BYTES
    ? null
    : parseUntrusted(DOCUMENT, () => entry.json())
  return document?.app === app ? document : null
}

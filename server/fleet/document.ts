import { z } from 'zod'
import { isSomebody } from '../config/actor-names.ts'
import { MEMBER_NAME } from '../config/member-name.ts'
import { parseUntrusted, textUpTo } from './untrusted-json.ts'
import { MAX_ID, type FleetRollout } from './rollout.ts'
import { DIGEST } from './store.ts'
import type { KvEntry } from '@nats-io/kv'

/**
 * The rollout of an app over the fleet as NATS stores it. Anybody with access to NATS can write there, so a document of
 * another shape is ignored.
 */
const MAX_BYTES = 900 * 1024
export const MAX_MEMBERS = 2000

const time = textUpTo(40)
const member = z.string().regex(MEMBER_NAME)

/**
 * What one member does in it: `boot`: the master that took it; `rollout`: its own; times by its own clock; `isLate`: it
 * ended after the others had given it up.
 */
const TURN = z.object({
  state: z.enum(['pending', 'running', 'succeeded', 'failed', 'reverting', 'reverted', 'skipped']),
  boot: textUpTo(64).nullable(),
  rollout: z.int().min(1).nullable(),
  from: textUpTo(50).nullable(),
  to: textUpTo(50).nullable(),
  startedAt: time.nullable(),
  finishedAt: time.nullable(),
  reason: textUpTo(500).nullable(),
  isLate: z.boolean()
})

const MOMENT = z.object({ at: time, type: z.string().regex(/^[a-z-]{1,50}$/), member: member.nullable(),
  actor: textUpTo(200).nullable(), message: textUpTo(500).nullable() })

/**
 * `uid` is never used twice, while a NATS server that loses data may give an id twice. `batches`: in the order of their
 * turns; the members of one are in theirs at the same time. `deadlineMs`: of a turn; `absent`: were silent when it
 * began; `timeline`: oldest first.
 */
export const DOCUMENT = z.object({ id: z.int().min(1).max(MAX_ID), uid: textUpTo(64), app: textUpTo(200),
  kind: z.enum(['restart', 'deploy', 'rollback']),
  source: z.object({ path: textUpTo(4096).optional(), digest: z.string().regex(DIGEST).optional(),
    release: textUpTo(50).optional() }), batches: z.array(z.array(member).min(1)).min(1).max(MAX_MEMBERS),
  pauseMs: z.int().min(0), deadlineMs: z.int().min(1000), onFailure: z.enum(['hold', 'rollback']),
  state: z.enum(['running', 'paused', 'held', 'rolling-back', 'succeeded', 'failed', 'rolled-back']),
  turns: z.record(member, TURN), absent: z.array(member), actor: z.string().refine(isSomebody),
  note: textUpTo(1000).nullable(), reason: textUpTo(500).nullable(), startedAt: time, finishedAt: time.nullable(),
  timeline: z.array(MOMENT).min(1).max(200) }).refine(({ batches, turns }) => {
    const members = batches.flat()
    return members.length <= MAX_MEMBERS && members.length === Object.keys(turns).length &&
      members.every((each) => Object.hasOwn(turns, each))
  })

/** Null: it is none, or of another app */
export function documentOf (entry: KvEntry, app: string): FleetRollout | null {
  const document = entry.operation !== 'PUT' || entry.length > MAX_BYTES
    ? null
    : parseUntrusted(DOCUMENT, () => entry.json())
  return document?.app === app ? document : null
}

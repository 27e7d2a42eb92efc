import { z } from 'zod'
import { askHost, lenient, VIEWER } from '../api/ask.ts'
import { WORKER } from '../api/cluster.ts'
import { listOf } from '../api/fields.ts'
import { toDeckError } from '../problem.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { besideSlot, toWorkerRow } from '../dashboard/worker-row.ts'
import type { AppFleet as Fleet } from './app-fleet.ts'

/** The workers of other members. A member is asked only while a page is open, once for all viewers. */
type Worker = z.infer<typeof SAID>['items'][number]
/** null: not known yet; `problem`: why there is nothing newer */
export type Inside = { workers: ReturnType<typeof besideSlot<ReturnType<typeof toWorkerRow<Worker>>>>[] | null,
  problem: string | null }
/** `askedAt`: wall time, ms */
type Known = { askedAt: number, coming: Promise<void> | null, inside: Inside }

const AGAIN_MS = 1000
const ANSWER_WITHIN_MS = 5000
const KEPT_MS = 60_000
const MAX_WORKERS = 1024

const { id, slot, pid, release, startedAt, orphan, drifted, restarts, crashLooping, retryAt, holds, keptUntil,
  finished } = WORKER.shape
const figure = z.number().nullable().catch(null)
/** Another version may know other states and causes. */
const SAID = lenient(
  listOf(
    z.object({ id, slot: slot.max(MAX_WORKERS), pid, state: z.string(), release, startedAt, orphan, drifted, restarts,
      crashLooping, retryAt, holds, keptUntil, finished,
      vitals: z.object({ requestsPerSecond: figure, latencyP99Ms: figure, rssBytes: figure, cpuPercent: figure })
        .nullable() })
  ),
  MAX_WORKERS
)

/** by the name of the member */
const KNOWN: WeakMap<Fleet, Map<string, Known>> = new WeakMap()

/** `member`: one that accepts read requests; `now`: wall time, ms. Returns what is known now; asks for newer data. */
export function cachedMember (fleet: Fleet, member: string, now: number): Inside {
  return askMember(fleet, member, now).inside
}

/** The same, but waits up to `withinMs` for the answer. */
export async function fetchMember (fleet: Fleet, member: string, now: number, withinMs: number): Promise<Inside> {
  const known = askMember(fleet, member, now)
  await waitAtMost(Promise.resolve(known.coming), withinMs)
  return known.inside
}

/** Forces the next request, as an action has changed the member. */
export function refreshMember (fleet: Fleet, member: string) {
  const known = KNOWN.get(fleet)?.get(member)
  if (known) known.askedAt = -Infinity
}

function askMember (fleet: Fleet, member: string, now: number): Known {
  const all = KNOWN.get(fleet) ?? new Map()
  KNOWN.set(fleet, all)
  for (const [name, { askedAt }] of all) if (name !== member && now - askedAt > KEPT_MS) all.delete(name)
  const known: Known = all.get(member) ?? { askedAt: -Infinity, coming: null, inside: { workers: null, problem: null } }
  all.set(member, known)
  // The clock may have been set back.
  if (known.coming || Math.abs(now - known.askedAt) < AGAIN_MS) return known
  known.askedAt = now
  known.coming = askHost(fleet, member, { path: '/workers', answer: SAID, withinMs: ANSWER_WITHIN_MS }, VIEWER).then(
    ({ items }) => {
      known.inside = { workers: items.map(toWorkerRow).map(besideSlot), problem: null }
    },
    (error) => {
      known.inside = { ...known.inside, problem: toDeckError(error).message }
    }
  ).finally(() => {
    known.coming = null
  })
  return known
}

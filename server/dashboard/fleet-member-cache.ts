import { OWNER } from '../config/actor-names.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { z } from 'zod'
import { toDeckError } from '../problem.ts'
import { toLine } from './logs-page.ts'
import { besideSlot, toWorkerRow } from './worker-row.ts'
import type { AppFleet as Fleet } from '../fleet/app-fleet.ts'
import type { Person } from '../fleet/rpc-client.ts'

/**
 * Caches what pages show of other members: their workers and the last lines of their output. A member is asked only
 * while a page is open, once for all viewers. Its answers are hostile input.
 */
type Worker = z.infer<typeof WORKERS>['items'][number]
/** null: not known yet; a problem: why there is nothing newer */
type Inside = { workers: ReturnType<typeof besideSlot<ReturnType<typeof toWorkerRow<Worker>>>>[] | null,
  workersProblem: string | null, lines: ReturnType<typeof toLine>[] | null, linesProblem: string | null }
/** `askedAt`: wall time, ms */
type Known = { askedAt: number, coming: Promise<void> | null, inside: Inside }

const AGAIN_MS = 1000
const ANSWER_WITHIN_MS = 5000
const KEPT_MS = 60_000
const SHOWN_LINES = 40
/** The limit for all logs of a member together; each slot has two. */
const ASKED_LINES = 240
const MAX_WORKERS = 1024
const MAX_LINES = 10_000
/** A viewer may see everything of a member that accepts read requests. */
export const VIEWER: Person = Object.freeze({ name: null, actor: OWNER, role: 'viewer', client: 'dashboard' })
const UNKNOWN: Inside = Object.freeze({ workers: null, workersProblem: null, lines: null, linesProblem: null })

const textUpTo = (chars: number) => z.string().transform((all) => all.slice(0, chars))
const time = z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z$/)
const number = z.int().min(1)
const count = z.int().min(0)
const figure = z.number().nullable().catch(null)

const WORKERS = z.object({
  items: z.array(
    z.object({ id: number.nullable(), slot: number.max(MAX_WORKERS), pid: number.nullable(), state: textUpTo(20),
      release: textUpTo(20), startedAt: time.nullable(), restarts: z.int().min(0), crashLooping: z.boolean(),
      drifted: z.boolean(), orphan: z.boolean(), retryAt: time.nullable(), keptUntil: time.nullable().default(null),
      holds: z.object({ transfers: count, webSockets: count, eventStreams: count, connections: count,
        sessions: count.default(0) }).nullable().default(null),
      finished: z.object({ at: time, cause: textUpTo(60), code: z.int().nullable(), succeeded: z.boolean() })
        .nullable(),
      vitals: z.object({ requestsPerSecond: figure, latencyP99Ms: figure, rssBytes: figure, cpuPercent: figure })
        .nullable() })
  ).max(MAX_WORKERS)
})
const LINES = z.object({
  items: z.array(
    z.object({ slot: z.int().min(0).max(MAX_WORKERS), stream: z.enum(['stdout', 'stderr']), text: z.string(),
      arrivedAt: time.nullable() })
  ).max(MAX_LINES)
})

/** by the name of the member */
const KNOWN: WeakMap<Fleet, Map<string, Known>> = new WeakMap()

/** `member`: one that accepts read requests; `now`: wall time, ms. Returns what is known now; asks for newer data. */
export function cachedMember (fleet: Fleet, member: string, now: number): Inside {
  return askMember(fleet, member, now).inside
}

/** The same, but waits up to `withinMs` for the answer. */
export async function fetchMember (fleet: Fleet, member: string, now: number, withinMs: number): Promise<Inside> {
  const known = askMember(fleet, member, now)
  const ending = new AbortController()
  await Promise.race([known.coming, delay(withinMs, undefined, { signal: ending.signal })])
  ending.abort()
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
  const known: Known = all.get(member) ?? { askedAt: -Infinity, coming: null, inside: UNKNOWN }
  all.set(member, known)
  // The clock may have been set back.
  if (known.coming || Math.abs(now - known.askedAt) < AGAIN_MS) return known
  known.askedAt = now
  known.coming = fetchInside().finally(() => {
    known.coming = null
  })
  return known

  async function fetchInside () {
    const workers = await fetchAnswer(WORKERS, '/workers')
    const slots = Math.max(1, workers.value?.items.length ?? 1)
    const lines = await fetchAnswer(LINES,
      `/logs?lines=${Math.max(2, Math.min(SHOWN_LINES, Math.floor(ASKED_LINES / slots)))}`)
    known.inside = { workers: workers.value?.items.map(toWorkerRow).map(besideSlot) ?? known.inside.workers,
      workersProblem: workers.problem,
      lines: lines.value?.items.slice(-SHOWN_LINES).map((line) => toLine(line, {})) ?? known.inside.lines,
      linesProblem: lines.problem }
  }

  async function fetchAnswer<S extends z.ZodType> (schema: S,
    path: string): Promise<{ value: z.infer<S> | null, problem: string | null }>
  {
    try {
      const value =
        schema.safeParse(await fleet.obtain(member, { method: 'GET', path }, VIEWER, { withinMs: ANSWER_WITHIN_MS }))
          .data ?? null
      return { value,
        problem: value === null ? `${member} sent an answer that this version does not understand` : null }
    } catch (error) {
      return { value: null, problem: toDeckError(error).message }
    }
  }
}

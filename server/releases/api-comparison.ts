import { z } from 'zod'
import { attempt, DeckError } from '../errors.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { COUNT, RELEASE_NAME } from '../api/fields.ts'
import { RELEASE } from '../api/filters.ts'
import { roleAllows } from '../api/roles.ts'
import { KEPT_RELEASE, PREVIEW, type KeptRelease } from '../api/shapes.ts'
import { isNewer } from '../config/release-id.ts'
import { LEAST_REQUESTS } from '../vitals/api-routes.ts'
import { median, readVitals, shortNumber } from '../vitals/api.ts'
import { parseRelease, RELEASE_PARAMETER } from './api.ts'
import type { Deck } from '../deck.ts'

/** Two releases side by side: what differs in them, and how their workers were. */
export type Comparison = z.infer<typeof COMPARISON>
export type Unsure = z.infer<typeof UNSURE>
export type ComparedFigures = z.infer<typeof FIGURES>
type Span = { sinceMs: number, untilMs: number }
type Source = Pick<Deck, 'snapshot' | 'releases' | 'vitals'>

const COMPARABLE = 100
/** The first figures of a release say little about it. */
const WARM_UP_MS = 30_000
const COMPARED_MS = 15 * 60_000
/** A release that has run for less time says little. */
const LEAST_MS = 60_000
const NO_TIME = Object.freeze({ sinceMs: 0, untilMs: 0 })
const NOT_MEASURED = Object.freeze({ figures: null, requests: null })
/** What clients feel comes first. */
const COLUMNS = ['latencyP99Ms', 'latencyP50Ms', 'requests5xxPerSecond', 'requestsPerSecond', 'loopDelayMaxMs',
  'eventLoopUtilization', 'cpuPercent', 'inFlight', 'openConnections', 'rssBytes'] as const

const FIGURES = z.strictObject(
  Object.fromEntries(COLUMNS.map((name) => [name, z.number().nullable()])) as Record<typeof COLUMNS[number],
    z.ZodNullable<z.ZodNumber>>
).nullable().describe(
  'medians of all workers together over up to 15 minutes; null: it has not served, or nothing is kept of that time'
)
const UNSURE = z.strictObject({ release: RELEASE_NAME,
  ranMs: COUNT.describe('0: it has never served alone, as far as is known'),
  requests: COUNT.nullable().describe('that it answered in the time of the figures; null: not known') })
const COMPARISON = z.strictObject({ from: KEPT_RELEASE, to: KEPT_RELEASE, changed: PREVIEW.shape.changed.unwrap(),
  commits: PREVIEW.shape.commits, files: PREVIEW.shape.files.describe('null: not known, or told to operators alone'),
  figures: z.strictObject({ from: FIGURES.describe('of its last minutes'), to: FIGURES.describe('of its first ones'),
    unsure: z.array(UNSURE).describe('those with too little to call either of them worse') }) }).meta({
    id: 'Comparison of releases'
  })

export function comparisonResources ({ deck, now }: { deck: Source, now: () => number }): Record<string, Resource> {
  return {
    '/releases/:release/compare': {
      GET: operation({ name: 'compareReleases', summary: 'Compares a release with another one: code and figures',
        description: 'Without `from`: with the one before it.', role: 'viewer', path: RELEASE_PARAMETER,
        query: z.strictObject({ from: RELEASE }), problems: ['not-found'], answer: COMPARISON,
        handle: async ({ params, query, auth }) => ({
          body: await compareReleases(deck, { from: query.from, to: parseRelease(params.release) }, { now: now(),
            seesFiles: roleAllows(auth.role, 'operator') })
        }) })
    }
  }
}

/** `from`: undefined: the one before it @throws {DeckError} not-found */
export async function compareReleases (deck: Source, { from, to: id }: { from?: string, to: string },
  { now, seesFiles }: { now: number, seesFiles: boolean }): Promise<Comparison>
{
  const to = deck.releases.get(id)
  const before = deck.releases.get(from ?? expectBase(deck, to))
  const differences = await deck.releases.compare(before.id, id, { withFiles: seesFiles })
  const spans = spansOf(deck.releases, now)
  const sideOf = (release: string, atEnd: boolean) => {
    const span = spans.get(release)
    return { release, ...(span && attempt(() => measure(deck.vitals, span, { now, atEnd }))) ?? NOT_MEASURED }
  }
  const [old, young] = [sideOf(before.id, true), sideOf(id, false)]
  return { from: before, to, ...differences,
    figures: { from: old.figures, to: young.figures, unsure: unsureOf([old, young], spans) } }
}

/** Those of two compared releases that ran too briefly, or answered too little, to call either of them worse. */
export function unsureOf (compared: { release: string, requests: number | null }[],
  spans: ReturnType<typeof spansOf>): Unsure[]
{
  return compared.map(({ release, requests }) => {
    const { sinceMs, untilMs } = spans.get(release) ?? NO_TIME
    return { release, ranMs: untilMs - sinceMs, requests }
  }).filter(({ ranMs, requests }) => ranMs < LEAST_MS || (requests !== null && requests < LEAST_REQUESTS))
}

/** When each release served: from its first worker to that of the next release. */
export function spansOf (releases: Pick<Deck['releases'], 'list'>, now: number): Map<string, Span> {
  const begun = releases.list({ limit: COMPARABLE }).items.flatMap(({ id, servedAt }) =>
    servedAt === null ? [] : { id, sinceMs: Date.parse(servedAt) }
  ).sort((one, other) => one.sinceMs - other.sinceMs)
  return new Map(
    begun.map(({ id, sinceMs }) => [id, { sinceMs, untilMs: begun.find((other) =>
      other.sinceMs > sinceMs
    )?.sinceMs ?? now }])
  )
}

/** @throws {DeckError} not-found */
function expectBase (deck: Source, to: KeptRelease): string {
  const base = knownBase(deck, to)
  if (base === null) throw new DeckError('not-found', `No release from before ${to.id} is kept: name one as "from"`)
  return base
}

/** @returns what a release is compared with: the one before it, else the one that runs */
export function baseOf (deck: Pick<Deck, 'snapshot' | 'releases'>, release: KeptRelease): string {
  return knownBase(deck, release) ?? deck.snapshot().release.id
}

/** Null: it is the first one that is kept */
export function knownBase ({ releases }: Pick<Deck, 'releases'>, { id, changed }: KeptRelease): string | null {
  // A list looks at the files of all of its releases.
  const before = changed && attempt(() => releases.get(changed.from))
  if (before) return before.id
  const older = releases.list({ limit: COMPARABLE }).items.filter((each) => isNewer(id, each.id))
  return older.sort((one, other) => isNewer(one.id, other.id) ? -1 : 1)[0]?.id ?? null
}

/** `atEnd`: of its last 15 minutes, else of its first ones. `requests`: null: nobody counts them */
function measure (vitals: Deck['vitals'], { sinceMs, untilMs }: Span,
  { now, atEnd }: { now: number, atEnd: boolean }): { figures: ComparedFigures, requests: number | null }
{
  const warm = sinceMs + Math.min(WARM_UP_MS, (untilMs - sinceMs) / 4)
  const [since, until] = atEnd
    ? [Math.max(warm, untilMs - COMPARED_MS), untilMs]
    : [warm, Math.min(untilMs, warm + COMPARED_MS)]
  if (until <= since) return NOT_MEASURED
  const { time, cluster } = readVitals(vitals, { since, until, columns: [...COLUMNS, 'requests'], slots: 'none' }, now)
  if (time.length === 0) return NOT_MEASURED
  const requests = cluster.requests.filter((each) => each !== null)
  return {
    figures: Object.fromEntries(
      COLUMNS.map((name) => [name, shortNumber(median(cluster[name] ?? []))])
    ) as ComparedFigures,
    requests: requests.length === 0 ? null : requests.reduce((sum, each) => sum + each, 0)
  }
}

import { z } from 'zod'
import { attempt, DeckError } from '../errors.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { RELEASE } from '../api/filters.ts'
import { roleAllows } from '../api/roles.ts'
import { KEPT_RELEASE, PREVIEW, type KeptRelease } from '../api/shapes.ts'
import { isNewer } from '../config/release-id.ts'
import { median, readVitals, shortNumber } from '../vitals/api.ts'
import { parseRelease, RELEASE_PARAMETER } from './api.ts'
import type { Deck } from '../deck.ts'

/** Two releases side by side: what differs in them, and how their workers were. */
export type Comparison = z.infer<typeof COMPARISON>
export type ComparedFigures = z.infer<typeof FIGURES>
type Source = Pick<Deck, 'snapshot' | 'releases' | 'vitals'>

const COMPARABLE = 100
/** The first figures of a release say little about it. */
const WARM_UP_MS = 30_000
const COMPARED_MS = 15 * 60_000
/** What clients feel comes first. */
const COLUMNS = ['latencyP99Ms', 'latencyP50Ms', 'requests5xxPerSecond', 'requestsPerSecond', 'loopDelayMaxMs',
  'eventLoopUtilization', 'cpuPercent', 'inFlight', 'openConnections', 'rssBytes'] as const

const FIGURES = z.strictObject(
  Object.fromEntries(COLUMNS.map((name) => [name, z.number().nullable()])) as Record<typeof COLUMNS[number],
    z.ZodNullable<z.ZodNumber>>
).nullable().describe(
  'medians of all workers together over up to 15 minutes; null: it has not served, or nothing is kept of that time'
)
const COMPARISON = z.strictObject({ from: KEPT_RELEASE, to: KEPT_RELEASE, changed: PREVIEW.shape.changed.unwrap(),
  commits: PREVIEW.shape.commits, files: PREVIEW.shape.files.describe('null: not known, or told to operators alone'),
  figures: z.strictObject({ from: FIGURES.describe('of its last minutes'),
    to: FIGURES.describe('of its first ones') }) }).meta({ id: 'Comparison of releases' })

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
  const served = deck.releases.list({ limit: COMPARABLE }).items.flatMap(({ servedAt }) => servedAt ?? []).sort()
  const figures = (release: KeptRelease, atEnd: boolean) =>
    attempt(() => figuresOf(deck, release, { served, now, atEnd }))
  return { from: before, to, ...differences, figures: { from: figures(before, true), to: figures(to, false) } }
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

/** `served`: when releases began to serve, oldest first; `atEnd`: of its last 15 minutes, else of its first ones */
function figuresOf ({ vitals }: Pick<Deck, 'vitals'>, { servedAt }: Pick<KeptRelease, 'servedAt'>,
  { served, now, atEnd }: { served: string[], now: number, atEnd: boolean }): ComparedFigures
{
  if (servedAt === null) return null
  const next = served.find((at) => at > servedAt)
  const [start, end] = [Date.parse(servedAt), next ? Date.parse(next) : now]
  const warm = start + Math.min(WARM_UP_MS, (end - start) / 4)
  const [since, until] = atEnd && next
    ? [Math.max(warm, end - COMPARED_MS), end]
    : [warm, Math.min(end, warm + COMPARED_MS)]
  if (until <= since) return null
  const { time, cluster } = readVitals(vitals, { since, until, columns: [...COLUMNS], slots: 'none' }, now)
  if (time.length === 0) return null
  return Object.fromEntries(COLUMNS.map((name) => [name, shortNumber(median(cluster[name] ?? []))])) as ComparedFigures
}

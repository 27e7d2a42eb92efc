import { z } from 'zod'
import { operation, type Resource } from '../api/endpoint.ts'
import { COUNT, RELEASE_NAME, TIME, toIso } from '../api/fields.ts'
import { eventFilters } from '../api/filters.ts'
import { functionsOf, HOT_FUNCTIONS, type Looked } from './api-hot-functions.ts'
import { sharesOf, type Share } from '../events/api-what-ran.ts'
import type { Window } from './profiling.ts'

/** Continuous profiling: what the workers ran in the last hour. */
type Deck = Pick<import('../deck.ts').Deck, 'profiling' | 'crashes' | 'releases'>

const BINARY = 'application/octet-stream'
/** Percent of the time of a worker; less is chance. */
const MIN_CHANGE = 0.1
const MAX_CHANGES = 30
const PERCENT = z.number().min(0)

const SPAN = { slices: COUNT.describe('how many profiles of 5 s it is made of'),
  since: TIME.nullable().describe('the first of them began then'),
  until: TIME.nullable().describe('the last of them began then') }

export type ProfileFunctions = z.infer<typeof PROFILE_FUNCTIONS>
const PROFILE_FUNCTIONS = HOT_FUNCTIONS.extend({ isOn: z.boolean().describe('whether continuous profiling is on'),
  ...SPAN }).meta({ id: 'ProfileFunctions' })

const BUSY = z.strictObject({ busyPercent: PERCENT.describe('of the time of a worker'), ...SPAN })
const CHANGE = z.strictObject({ function: z.string(),
  place: z.string().describe(
    'file and line where the function begins, as in the later of the two; empty: of V8 itself'
  ), owner: HOT_FUNCTIONS.shape.functions.element.shape.owner,
  beforePercent: PERCENT.describe('of the time of a worker, with what Node.js did for the function'),
  afterPercent: PERCENT })

export type ProfileChanges = z.infer<typeof PROFILE_CHANGES>
const PROFILE_CHANGES = z.strictObject({ before: BUSY, after: BUSY,
  functions: z.array(CHANGE).describe('those whose share has changed most, first') }).meta({ id: 'ProfileChanges' })

export function profileWindow (now: () => number) {
  const { since, until, worker, release } = eventFilters(now)
  return { since, until, worker, release }
}

export function profileResources ({ deck, now }: { deck: Deck, now: () => number }): Record<string, Resource> {
  const window = profileWindow(now)
  return {
    '/profiles/functions': {
      GET: operation({ name: 'getProfileFunctions',
        summary:
          'Returns what ran in a window of time, by continuous profiling: the functions that were busiest, with the lines of their source',
        role: 'operator', cli: 'clusterdeck profile --since 10m', query: z.strictObject(window),
        answer: PROFILE_FUNCTIONS, async handle ({ query }) {
        const { hot, ...span } = await lookIntoWindow(deck, query)
        return {
          body: { isOn: deck.profiling.isOn(), slices: span.slices, since: span.since, until: span.until, ...hot }
        }
      } })
    },

    '/profiles/changes': {
      GET: operation({ name: 'getProfileChanges',
        summary: 'Compares what ran with what ran on another release: the functions whose share of the CPU has changed',
        role: 'operator', cli: 'clusterdeck profile --release r9 --before-release r8',
        query: z.strictObject({ ...window, beforeRelease: RELEASE_NAME.describe('a release such as r12') }),
        answer: PROFILE_CHANGES, handle: async ({ query }) => ({ body: await readChanges(deck, query) }) })
    },

    '/profiles/file': {
      GET: operation({ name: 'getProfileFile',
        summary:
          'Returns the profiles of a window as one CPU profile (.cpuprofile), such as for the flame graph of Chrome or VS Code',
        role: 'operator', query: z.strictObject(window), produces: [BINARY, 'application/json'],
        answer: { [BINARY]: z.file() }, async handle ({ query, res }) {
        const { profile } = await deck.profiling.read(query)
        res.set({ 'Content-Type': BINARY, 'Content-Disposition': 'attachment; filename="clusterdeck.cpuprofile"',
          'Cache-Control': 'no-store' })
        res.end(JSON.stringify(profile))
        return undefined
      } })
    }
  }
}

export async function lookIntoWindow (deck: Deck, window: Window): Promise<Looked & ReturnType<typeof spanOf>> {
  const { profile, slices } = await deck.profiling.read(window)
  const { release = '', at = 0 } = slices[0] ?? {}
  return { ...spanOf(slices), ...functionsOf(profile, { release, startedAt: toIso(at) }, deck) }
}

export async function readChanges (deck: Deck,
  { beforeRelease, ...window }: Window & { beforeRelease: string }): Promise<ProfileChanges>
{
  const [before, after] = [await sharesOf(deck, { release: beforeRelease }), await sharesOf(deck, window)]
  const [old, young] = [before, after].map(({ slices, busyPercent }) => ({ busyPercent: rounded(busyPercent),
    ...spanOf(slices) })
  )
  return { before: old, after: young, functions: changesOf(before.shares, after.shares) }
}

/** @returns those that have changed most, first */
function changesOf (before: Map<string, Share>, after: Map<string, Share>): ProfileChanges['functions'] {
  const changes = [...new Map([...before, ...after])].map(([key, { name, place, owner }]) => ({ function: name, place,
    owner, beforePercent: rounded(before.get(key)?.percent ?? 0), afterPercent: rounded(after.get(key)?.percent ?? 0) })
  )
  const changeOf = ({ beforePercent, afterPercent }: (typeof changes)[number]) => Math.abs(afterPercent - beforePercent)
  return changes.filter((each) => changeOf(each) >= MIN_CHANGE).sort((a, b) => changeOf(b) - changeOf(a)).slice(0,
    MAX_CHANGES)
}

function rounded (percent: number) {
  return Math.round(percent * 100) / 100
}

/** `slices`: newest first */
function spanOf (slices: { at: number }[]) {
  const [newest, oldest] = [slices.at(0), slices.at(-1)]
  return { slices: slices.length, since: oldest ? toIso(oldest.at) : null, until: newest ? toIso(newest.at) : null }
}

import { z } from 'zod'
import { toCallTree } from './call-tree.ts'
import { DeckError } from '../errors.ts'
import { compareFunctions, FUNCTION_CHANGE } from './function-changes.ts'
import { operation, type Resource } from './endpoint.ts'
import { COUNT, listOf, NUMBER, RELEASE_NAME, TIME, toIso } from './fields.ts'
import { eventFilters } from './filters.ts'
import { folderOf, functionsOf, HOT_FUNCTIONS } from './hot-functions.ts'
import type { Window } from '../diagnostics/profiling.ts'

/** Continuous profiling: what the workers ran in the last hour. */
type Deck = Pick<import('../deck.ts').Deck, 'profiling' | 'crashes' | 'releases'>

const BINARY = 'application/octet-stream'
const MS = z.number().min(0)

const SLICE = z.strictObject({ at: TIME, worker: NUMBER, slot: NUMBER, release: RELEASE_NAME }).meta({
  id: 'ProfileSlice'
})

const SPAN = { slices: COUNT.describe('how many profiles of 5 s it is made of'),
  since: TIME.nullable().describe('the first of them began then'),
  until: TIME.nullable().describe('the last of them began then') }

export type ProfileFunctions = z.infer<typeof PROFILE_FUNCTIONS>
const PROFILE_FUNCTIONS = HOT_FUNCTIONS.extend({ isOn: z.boolean().describe('whether continuous profiling is on'),
  ...SPAN }).meta({ id: 'ProfileFunctions' })

export type ProfileChanges = z.infer<typeof PROFILE_CHANGES>
const PROFILE_CHANGES = z.strictObject({ before: z.strictObject({ busyMs: MS, idleMs: MS, ...SPAN }),
  after: z.strictObject({ busyMs: MS, idleMs: MS, ...SPAN }),
  functions: z.array(FUNCTION_CHANGE).describe('those whose share has changed most, first') }).meta({
    id: 'ProfileChanges'
  })

export function profileWindow (now: () => number) {
  const { since, until, worker, slot, release } = eventFilters(now)
  return { since, until, worker, slot, release }
}

export function profileResources ({ deck, now }: { deck: Deck, now: () => number }): Record<string, Resource> {
  const window = profileWindow(now)
  return {
    '/profiles': {
      GET: operation({ name: 'listProfiles',
        summary: 'Lists the CPU profiles that continuous profiling has taken in the last hour, newest first',
        role: 'viewer', query: z.strictObject(window), answer: listOf(SLICE),
        handle: ({ query }) => ({
          body: {
            items: deck.profiling.list(query).map(({ at, worker, slot, release }) => ({ at: toIso(at), worker, slot,
              release })
            )
          }
        }) })
    },

    '/profiles/functions': {
      GET: operation({ name: 'getProfileFunctions',
        summary:
          'Returns what ran in a window of time, by continuous profiling: the functions that were busiest, with the lines of their source',
        role: 'operator', cli: 'clusterdeck profile --since 10m', query: z.strictObject(window),
        answer: PROFILE_FUNCTIONS, handle: async ({ query }) => ({ body: await readFunctions(deck, query) }) })
    },

    '/profiles/changes': {
      GET: operation({ name: 'getProfileChanges',
        summary:
          'Compares what ran in two windows of time, or on two releases: the functions whose share of the CPU has changed',
        role: 'operator', cli: 'clusterdeck profile --release r9 --before-release r8',
        query: z.strictObject({ ...window, beforeSince: window.since, beforeUntil: window.until,
          beforeWorker: window.worker, beforeRelease: window.release }), problems: ['not-possible'],
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

export async function readFunctions (deck: Deck, window: Window): Promise<ProfileFunctions> {
  const { profile, slices } = await deck.profiling.read(window)
  const { release = '', at = 0 } = slices[0] ?? {}
  return { isOn: deck.profiling.isOn(), ...spanOf(slices),
    ...functionsOf(profile, { release, startedAt: toIso(at) }, deck) }
}

/** @throws {DeckError} not-possible */
export async function readChanges (deck: Deck,
  { beforeSince, beforeUntil, beforeWorker, beforeRelease, ...after }: Window & { beforeSince?: number,
    beforeUntil?: number, beforeWorker?: number, beforeRelease?: string }): Promise<ProfileChanges>
{
  if ([beforeSince, beforeUntil, beforeWorker, beforeRelease].every((each) => each === undefined)) {
    throw new DeckError('not-possible',
      'expected what to compare with: beforeSince, beforeUntil, beforeWorker or beforeRelease; received none of them')
  }
  const [old, young] = [
    await treeOf({ since: beforeSince, until: beforeUntil, worker: beforeWorker, release: beforeRelease }),
    await treeOf(after)
  ]
  return { before: old.span, after: young.span, functions: compareFunctions(old.tree, young.tree) }

  async function treeOf (window: Window) {
    const { profile, slices } = await deck.profiling.read(window)
    // In place all releases are in one folder, also one that is no longer known.
    const folder =
      [slices.at(0)?.release, after.release].map((release) => release === undefined ? '' : folderOf(deck, release))
        .find((each) => each !== '') ?? ''
    const tree = toCallTree(profile, { folder })
    return { tree, span: { busyMs: Math.round(tree.root.totalMs), idleMs: Math.round(tree.idleMs), ...spanOf(slices) } }
  }
}

/** `slices`: newest first */
function spanOf (slices: { at: number }[]) {
  const [newest, oldest] = [slices.at(0), slices.at(-1)]
  return { slices: slices.length, since: oldest ? toIso(oldest.at) : null, until: newest ? toIso(newest.at) : null }
}

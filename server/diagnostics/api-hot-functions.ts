import { z } from 'zod'
import { toCallTree, type Frame } from './api-call-tree.ts'
import { attempt, DeckError } from '../errors.ts'
import { SOURCE } from '../crashes/api.ts'
import { NUMBER } from '../api/fields.ts'
import type { Diagnostic } from './diagnostics.ts'
import type { Deck } from '../deck.ts'

/** Where the time of a CPU profile went. */

const MAX_FUNCTIONS = 20
const MAX_CALLS = 40

const MS = z.number().min(0)
const PLACE = z.string().meta({ description: 'file and line where the function begins; empty: of V8 itself',
  examples: ['src/prices.js:12'] })

export type HotFunctions = z.infer<typeof HOT_FUNCTIONS>
export const HOT_FUNCTIONS = z.strictObject({ busyMs: MS, idleMs: MS.describe('the time in which nothing ran'),
  functions: z.array(
    z.strictObject({ function: z.string(), place: PLACE, owner: z.enum(['app', 'package', 'node', 'engine']),
      selfMs: MS.describe('in the function itself'), totalMs: MS.describe('with all that it called'),
      line: NUMBER.nullable().describe('its line with the most time; null: not known'),
      source: SOURCE.describe('the lines around that line, of the first functions of the app; null: not known') })
  ).describe(`by their own time, most first, at most ${MAX_FUNCTIONS}`),
  calls: z.array(z.strictObject({ function: z.string(), place: PLACE, totalMs: MS })).describe(
    'the busiest way from the event loop inwards'
  ) }).meta({ id: 'HotFunctions' })

/** `text`: of the file @throws {DeckError} not-possible */
export function hotFunctions (text: string, item: Diagnostic,
  deck: { crashes: Pick<Deck['crashes'], 'sourceLines'>, releases: Pick<Deck['releases'], 'get'> }): Looked
{
  return functionsOf(parseProfile(text), item, deck)
}

/** `root`: of the tree of calls */
export type Looked = { hot: HotFunctions, root: Frame }

export function functionsOf (profile: unknown, item: Pick<Diagnostic, 'release' | 'startedAt'>,
  deck: Parameters<typeof hotFunctions>[2]): Looked
{
  const { root, idleMs, functions } = treeOf(profile, folderOf(deck, item.release))
  const busiest = functions.filter(({ selfMs }) => selfMs > 0).slice(0, MAX_FUNCTIONS)
  const sources = sourcesOf(busiest, item, deck)
  return { root,
    hot: { busyMs: rounded(root.totalMs), idleMs: rounded(idleMs),
      functions: busiest.map(({ name, place, owner, selfMs, totalMs, line }, index) => ({ function: name, place, owner,
        selfMs: rounded(selfMs), totalMs: rounded(totalMs), line, source: sources[index] })
      ), calls: busiestWay(root) } }
}

/**
 * The profiled process wrote it.
 * @throws {DeckError} not-possible
 */
function parseProfile (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new DeckError('not-possible', 'The file of this profile is not whole', { cause })
  }
}

function treeOf (profile: unknown, folder: string) {
  try {
    return toCallTree(profile, { folder })
  } catch (cause) {
    throw new DeckError('not-possible', 'The file of these diagnostics is no CPU profile', { cause })
  }
}

export function folderOf ({ releases }: Pick<Parameters<typeof hotFunctions>[2], 'releases'>, release: string): string {
  // Of a release that is no longer kept the places stay whole.
  return attempt(() => releases.get(release).path, '')
}

function sourcesOf (functions: { path: string, owner: string, name: string, line: number | null }[],
  { release, startedAt }: Pick<Diagnostic, 'release' | 'startedAt'>, deck: Parameters<typeof hotFunctions>[2])
{
  const frames = functions.map(({ path, owner, name, line }) => ({ function: name, file: path.replace(/:\d+$/, ''),
    line, column: null, isInApp: owner === 'app' })
  )
  return deck.crashes.sourceLines({ at: startedAt, release, stack: null, frames })
}

function busiestWay (root: Frame): HotFunctions['calls'] {
  const calls = []
  for (let frame = root.children[0]; frame && calls.length < MAX_CALLS; frame = frame.children[0])
    calls.push({ function: frame.name, place: frame.place, totalMs: rounded(frame.totalMs) })
  return calls
}

function rounded (ms: number) {
  return Math.round(ms * 10) / 10
}

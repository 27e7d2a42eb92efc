import { z } from 'zod'
import { toFlameTree } from '../../public/flame-tree.js'
import { DeckError } from '../errors.js'
import { SOURCE } from './crashes.js'
import { NUMBER } from './fields.js'

/**
 * Where the time of a CPU profile went, for those who cannot look at a flame graph.
 * @typedef {import('../diagnostics/diagnostics.js').Diagnostic} Diagnostic
 * @typedef {import('../../public/flame-tree.js').Frame} Frame
 */

const MAX_FUNCTIONS = 20
const MAX_CALLS = 40

const MS = z.number().min(0)
const PLACE = z.string().meta({ description: 'file and line where the function begins; empty: of V8 itself', examples: ['src/prices.js:12'] })

/** @typedef {z.infer<typeof HOT_FUNCTIONS>} HotFunctions */
export const HOT_FUNCTIONS = z.strictObject({
  busyMs: MS,
  idleMs: MS.describe('the time in which nothing ran'),
  functions: z.array(z.strictObject({
    function: z.string(),
    place: PLACE,
    owner: z.enum(['app', 'package', 'node', 'engine']),
    selfMs: MS.describe('in the function itself'),
    totalMs: MS.describe('with all that it called'),
    line: NUMBER.nullable().describe('its line with the most time; null: not known'),
    source: SOURCE.describe('the lines around that line, of the first functions of the app; null: not known')
  })).describe(`by their own time, most first, at most ${MAX_FUNCTIONS}`),
  calls: z.array(z.strictObject({ function: z.string(), place: PLACE, totalMs: MS })).describe('the busiest way from the event loop inwards')
}).meta({ id: 'HotFunctions' })

/**
 * @param {string} text of the file @param {Diagnostic} item
 * @param {{ crashes: Pick<import('../deck.js').Deck['crashes'], 'sourceLines'>, releases: Pick<import('../deck.js').Deck['releases'], 'get'> }} deck
 * @returns {HotFunctions}
 * @throws {DeckError} not-possible
 */
export function hotFunctions (text, item, deck) {
  return functionsOf(parseProfile(text), item, deck)
}

/**
 * @param {unknown} profile @param {Pick<Diagnostic, 'release' | 'startedAt'>} item
 * @param {Parameters<typeof hotFunctions>[2]} deck
 * @returns {HotFunctions}
 */
export function functionsOf (profile, item, deck) {
  const { root, idleMs, functions } = treeOf(profile, folderOf(deck, item.release))
  const lines = hottestLines(profile)
  const busiest = functions.filter(({ selfMs }) => selfMs > 0).slice(0, MAX_FUNCTIONS).map((each) => ({ ...each, line: lines.get(each.key) ?? null }))
  const sources = sourcesOf(busiest, item, deck)
  return {
    busyMs: rounded(root.totalMs),
    idleMs: rounded(idleMs),
    functions: busiest.map(({ name, place, owner, selfMs, totalMs, line }, index) => ({ function: name, place, owner, selfMs: rounded(selfMs), totalMs: rounded(totalMs), line, source: sources[index] })),
    calls: busiestWay(root)
  }
}

/** The profiled process wrote it. @param {string} text @returns {unknown} @throws {DeckError} not-possible */
function parseProfile (text) {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new DeckError('not-possible', 'The file of this profile is not whole', { cause })
  }
}

/** @param {unknown} profile @param {string} folder */
function treeOf (profile, folder) {
  try {
    return toFlameTree(profile, { folder })
  } catch (cause) {
    throw new DeckError('not-possible', 'The file of these diagnostics is no CPU profile', { cause })
  }
}

/** @param {Pick<Parameters<typeof hotFunctions>[2], 'releases'>} deck @param {string} release @returns {string} empty: it is no longer known */
export function folderOf ({ releases }, release) {
  try {
    return releases.get(release).path
  } catch {
    // Its places stay whole.
    return ''
  }
}

/** V8 counts ticks by line. @param {any} profile that is one @returns {Map<string, number>} by the key of a function */
export function hottestLines (profile) {
  /** @type {Map<string, Map<number, number>>} */
  const ticks = new Map()
  for (const node of profile.nodes) {
    const { callFrame, positionTicks } = Object(node)
    const { functionName, url, lineNumber, columnNumber } = Object(callFrame)
    const key = JSON.stringify([String(functionName ?? ''), String(url ?? ''), Number(lineNumber), Number(columnNumber)])
    const known = ticks.get(key) ?? new Map()
    for (const each of Array.isArray(positionTicks) ? positionTicks : []) known.set(each?.line, (known.get(each?.line) ?? 0) + Number(each?.ticks))
    ticks.set(key, known)
  }
  return new Map([...ticks].flatMap(([key, lines]) => {
    const [hottest] = [...lines].filter(([line, count]) => Number.isSafeInteger(line) && line > 0 && count > 0).sort((a, b) => b[1] - a[1])
    return hottest ? [[key, hottest[0]]] : []
  }))
}

/**
 * @param {{ path: string, owner: string, name: string, line: number | null }[]} functions @param {Pick<Diagnostic, 'release' | 'startedAt'>} item
 * @param {Parameters<typeof hotFunctions>[2]} deck
 */
function sourcesOf (functions, { release, startedAt }, deck) {
  const frames = functions.map(({ path, owner, name, line }) => ({ function: name, file: path.replace(/:\d+$/, ''), line, column: null, isInApp: owner === 'app' }))
  return deck.crashes.sourceLines({ at: startedAt, release, stack: null, frames })
}

/** @param {Frame} root @returns {HotFunctions['calls']} */
function busiestWay (root) {
  const calls = []
  for (let frame = root.children[0]; frame && calls.length < MAX_CALLS; frame = frame.children[0]) calls.push({ function: frame.name, place: frame.place, totalMs: rounded(frame.totalMs) })
  return calls
}

/** @param {number} ms */
function rounded (ms) {
  return Math.round(ms * 10) / 10
}

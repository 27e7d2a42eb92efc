import { decodeCursor, encodeCursor } from '../../db/cursor.js'
import { releaseNumber } from '../config/release-id.js'
import { DeckError } from '../errors.js'

/** @typedef {ReturnType<typeof createCatalogue>} Catalogue */
/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {'succeeded' | 'failed' | 'rolled-back'} Outcome */
/**
 * `servedMs`: wall time since which it has served, as far as is known; `values`: null where another master has started it;
 * `stamp`: of all its files, for a snapshot.
 * @typedef {{ release: Release, outcome: Outcome | null, rollout: number | null, deployedMs: number | null, servedMs?: number | null, marks: import('./environment.js').Marks, values: import('./environment.js').Variables | null, stamp: string | null }} Item
 */

const CURSOR_KIND = 'd'
const MAX_LIMIT = 100

/**
 * The releases that are known, and the one giver of their numbers: `r<n>`, each used once.
 * @param {{ onError: (error: unknown) => void, now: () => number }} parts
 */
export function createCatalogue ({ onError, now }) {
  /** By the n of `r<n>`. @type {Map<number, Item>} */
  const known = new Map()
  let lastNumber = 0
  let highestStored = () => 0
  /** @type {import('../../db/releases.js').ReleaseRows | null} */
  let store = null

  return {

    /** The highest n given out. */
    lastNumber: () => lastNumber,

    /** @param {number} number has been given out by another master */
    countFrom (number) { lastNumber = Math.max(lastNumber, number) },

    /** @returns {number} one that was never given out, also by a master of an upgrade that came to nothing */
    takeNumber () {
      lastNumber = Math.max(lastNumber, highestStored()) + 1
      return lastNumber
    },

    /**
     * From now on it is kept in the history; what earlier masters kept there is known.
     * @param {import('../../db/releases.js').ReleaseRows} rows @param {() => number} highest  n ever given out
     */
    open (rows, highest) {
      store = rows
      highestStored = highest
      lastNumber = Math.max(lastNumber, highest())
      try {
        for (const row of rows.all()) restore(row)
      } catch (error) {
        onError(error)
      }
      if (known.size > 0) save()
    },

    /** @param {number} number @param {Item} item */
    put (number, item) { known.set(number, item) },

    /** @param {string} id @returns {Item | undefined} */
    find: (id) => known.get(releaseNumber(id)),

    mustFind,

    /** @returns {Item[]} */
    newestFirst: () => [...known].sort(([a], [b]) => b - a).map(([, item]) => item),

    /** @param {string} id @returns {Item | undefined} the last other one that has served */
    lastGood: (id) => [...known.values()].filter(({ release, servedMs }) => servedMs != null && release.id !== id).sort((a, b) => (b.servedMs ?? 0) - (a.servedMs ?? 0))[0],

    /** @param {{ limit?: number, cursor?: string | null }} query @param {Set<string>} used @returns {{ items: Record<string, any>[], next: string | null }} @throws {DeckError} invalid-query */
    page ({ limit = 50, cursor }, used) {
      const before = decodeCursor(CURSOR_KIND, cursor)
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const numbers = [...known.keys()].filter((number) => number < before).sort((a, b) => b - a)
      const items = numbers.slice(0, wanted).map((number) => shown(/** @type {Item} */ (known.get(number)), used))
      return { items, next: numbers.length > wanted ? encodeCursor(CURSOR_KIND, numbers[wanted - 1]) : null }
    },

    /** @param {{ release: string, outcome: Outcome, rollout?: number | null }} end */
    settle ({ release: id, outcome, rollout = null }) {
      const item = known.get(releaseNumber(id))
      if (!item) return
      Object.assign(item, { outcome, rollout, deployedMs: now(), ...(outcome === 'succeeded' ? { servedMs: now() } : {}) })
      save()
    },

    /**
     * Forgets those that were touched longest ago.
     * @param {number} keep how many @param {(id: string) => boolean} isNeeded @returns {Release[]} the forgotten ones
     */
    prune (keep, isNeeded) {
      const oldestFirst = [...known].sort(([, a], [, b]) => lastTouched(a) - lastTouched(b))
      const surplus = oldestFirst.slice(0, Math.max(0, known.size - keep)).filter(([, { release }]) => !isNeeded(release.id))
      for (const [number] of surplus) known.delete(number)
      if (surplus.length > 0) save()
      return surplus.map(([, { release }]) => release)
    },

    save
  }

  /** @param {string} id @returns {Item} @throws {DeckError} not-found */
  function mustFind (id) {
    const item = known.get(releaseNumber(id))
    if (!item) throw new DeckError('not-found', `Release ${id} does not exist or is no longer kept`)
    return item
  }

  /** @param {import('../../db/releases.js').ReleaseRow} row */
  function restore ({ number, outcome, deployedMs, body, arguments: words, marks }) {
    lastNumber = Math.max(lastNumber, number)
    const { stamp = null, rollout = null, servedMs = outcome === 'succeeded' ? deployedMs : null, ...shownBody } = body
    const ours = known.get(number)
    // One that this master has adopted already keeps the values that it goes on with; its marks are those of its deploy.
    if (ours) return Object.assign(ours, { stamp, marks, rollout, servedMs: servedMs ?? ours.servedMs })
    known.set(number, { release: /** @type {Release} */ ({ ...shownBody, ...words }), outcome: /** @type {Outcome | null} */ (outcome), rollout, deployedMs, servedMs, marks, values: null, stamp })
  }

  /** Writes them all: the next time makes up for one that failed. */
  function save () {
    try {
      store?.replace([...known].map(([number, { release, outcome, rollout, deployedMs, servedMs = null, marks, stamp }]) => {
        const { args = [], execArgv = [], environmentChanged: _, ...body } = release
        return { number, outcome, deployedMs, body: { ...body, stamp, rollout, servedMs }, arguments: { args, execArgv }, marks }
      }))
    } catch (error) {
      onError(error)
    }
  }
}

/** @param {Item} item @param {Set<string>} used */
export function shown ({ release: { args: _, execArgv: __, ...release }, outcome, rollout, deployedMs }, used) {
  return { ...release, outcome, rollout, deployedAt: deployedMs === null ? null : new Date(deployedMs).toISOString(), inUse: used.has(release.id) }
}

/** @param {Item} item wall time, ms */
function lastTouched ({ release, deployedMs }) {
  return deployedMs ?? Date.parse(release.createdAt)
}

import { checkKept, decodeCursor, encodeCursor } from '../../db/cursor.js'
import { releaseNumber } from '../config/release-id.js'
import { DeckError } from '../errors.js'

/** @typedef {ReturnType<typeof createCatalogue>} Catalogue */
/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {'succeeded' | 'failed' | 'rolled-back'} Outcome */
/**
 * What went wrong with a release after it had served: a rollback replaced it, or a later rollout to it did not succeed. `at`: wall time, ISO 8601.
 * @typedef {{ outcome: 'rolled-back' | 'failed', at: string, rollout: number, actor: string, reason: string | null }} Setback
 */
/**
 * `outcome`, `rollout`, `deployedMs`: of its last deploy that succeeded, or of its last one if none has; `servedMs`: wall
 * time since which it has served, as far as is known; `spec`: how its workers are started, null where another master has started it;
 * `stamp`: of all its files, for a copy; `rewritten`: how other files of its folder have changed by a later deploy from the same folder.
 * @typedef {object} Item
 * @property {Release} release
 * @property {Outcome | null} outcome
 * @property {number | null} rollout
 * @property {number | null} deployedMs
 * @property {number | null} [servedMs]
 * @property {Setback | null} [setback]
 * @property {import('./environment.js').Marks} marks
 * @property {import('./launch-spec.js').LaunchSpec | null} spec
 * @property {string | null} stamp
 * @property {import('../lifecycle/state.js').Drift | null} [rewritten]
 *
 * @typedef {{ used: Set<string>, current: string | null }} Use
 */

const CURSOR_KIND = 'd'
const MAX_LIMIT = 100
const GUARD = 'guard'

/**
 * Keeps the known releases and gives out their numbers, `r<n>`, each of them once.
 * @param {object} parts
 * @param {Pick<import('../../db/history.js').History, 'releases' | 'lastReleaseNumber'>} parts.history  has the releases of earlier masters
 * @param {number} parts.lastNumber  the highest n of `r<n>` that the master before knows of
 * @param {(error: unknown) => void} parts.onError
 * @param {() => number} parts.now
 */
export function createCatalogue ({ history, lastNumber, onError, now }) {
  /** By the n of `r<n>`. @type {Map<number, Item>} */
  const known = new Map()
  readKept()

  return {
    /** The highest n given out. */
    lastNumber: () => lastNumber,

    /** @param {number} number  that another master has given out */
    countFrom (number) { lastNumber = Math.max(lastNumber, number) },

    nextNumber,

    /** @returns {number} one that was never given out, not even by a master whose upgrade failed */
    takeNumber () {
      lastNumber = nextNumber()
      return lastNumber
    },

    readKept,

    /** @param {number} number @param {Item} item */
    put (number, item) { known.set(number, item) },

    /** @param {string} id @returns {Item | undefined} */
    find: (id) => known.get(releaseNumber(id)),

    mustFind,

    /** @returns {Item[]} */
    newestFirst: () => [...known].sort(([a], [b]) => b - a).map(([, item]) => item),

    lastGood,

    /**
     * @param {{ limit?: number, cursor?: string | null }} query @param {Use} cluster
     * @throws {DeckError} invalid-query, cursor-expired
     */
    page ({ limit = 50, cursor }, cluster) {
      const before = decodeCursor(CURSOR_KIND, cursor)
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const good = lastGood(cluster.current ?? '')
      const numbers = [...known.keys()].filter((number) => number < before).sort((a, b) => b - a)
      checkKept(before, () => numbers.length > 0)
      const items = numbers.slice(0, wanted).flatMap((number) => known.get(number) ?? []).map((item) => viewOf(item, cluster, good))
      return { items, next: numbers.length > wanted ? encodeCursor(CURSOR_KIND, numbers[wanted - 1]) : null }
    },

    show: viewOf,

    /**
     * Notes the outcome of a rollout to a release. One that has served stays a success: a later failure is its setback.
     * @param {{ release: string, outcome: Outcome, rollout?: number | null, actor?: string, reason?: string | null }} end
     */
    settle ({ release: id, outcome, rollout = null, actor = 'system', reason = null }) {
      const item = known.get(releaseNumber(id))
      if (!item) return
      if (outcome === 'succeeded') Object.assign(item, { outcome, rollout, deployedMs: now(), servedMs: now(), setback: null })
      else if (item.servedMs == null) Object.assign(item, { outcome, rollout, deployedMs: now() })
      else if (rollout !== null && !isRolledBack(item)) item.setback = { outcome: 'failed', at: isoTime(now()), rollout, actor, reason }
      saveAll()
    },

    /**
     * A rollback has replaced it.
     * @param {{ release: string, rollout: number, actor: string, reason: string | null }} by
     */
    markRolledBack ({ release: id, ...by }) {
      const item = known.get(releaseNumber(id))
      if (!item) return
      item.setback = { outcome: 'rolled-back', at: isoTime(now()), ...by }
      saveAll()
    },

    /**
     * Forgets those that were touched longest ago.
     * @param {number} keep how many @param {(id: string) => boolean} isNeeded @returns {Release[]} the forgotten ones
     */
    prune (keep, isNeeded) {
      const oldestFirst = [...known].sort(([, a], [, b]) => lastTouched(a) - lastTouched(b))
      const surplus = oldestFirst.slice(0, Math.max(0, known.size - keep)).filter(([, { release }]) => !isNeeded(release.id))
      for (const [number] of surplus) known.delete(number)
      if (surplus.length > 0) saveAll()
      return surplus.map(([, { release }]) => release)
    },

    save: saveAll
  }

  /**
   * @param {string} id
   * @returns {Item | undefined} the last other one that has served; one that people rolled back only if there is no other,
   *   one that the guard rolled back never
   */
  function lastGood (id) {
    const others = [...known.values()].filter(({ release, servedMs }) => servedMs != null && release.id !== id)
    const served = others.sort((a, b) => (b.servedMs ?? 0) - (a.servedMs ?? 0))
    return served.find((item) => !isRolledBack(item)) ?? served.find(({ setback }) => setback?.actor !== GUARD)
  }

  /** @param {Item} item @param {Use} cluster */
  function viewOf (item, { used, current }, good = lastGood(current ?? '')) {
    const { release: { args: _, execArgv: __, ...release }, outcome, rollout, deployedMs, servedMs, setback } = item
    return {
      ...release,
      outcome,
      rollout,
      deployedAt: deployedMs === null ? null : isoTime(deployedMs),
      servedAt: servedMs == null ? null : isoTime(servedMs),
      setback: setback ?? null,
      isLastGood: good?.release.id === release.id,
      inUse: used.has(release.id)
    }
  }

  /** @returns {number} the one that the next new release gets */
  function nextNumber () {
    return Math.max(lastNumber, history.lastReleaseNumber()) + 1
  }

  /** @param {string} id @returns {Item} @throws {DeckError} not-found */
  function mustFind (id) {
    const item = known.get(releaseNumber(id))
    if (!item) throw new DeckError('not-found', `Release ${id} does not exist or is no longer kept`)
    return item
  }

  /** Reads the releases of the history: at the start, and again after the history was taken over from another master. */
  function readKept () {
    lastNumber = Math.max(lastNumber, history.lastReleaseNumber())
    try {
      for (const row of history.releases.all()) restoreRow(row)
    } catch (error) {
      onError(error)
    }
    if (known.size > 0) saveAll()
  }

  /** @param {import('../../db/releases.js').ReleaseRow} row */
  function restoreRow ({ number, outcome, deployedMs, body, arguments: words, marks }) {
    lastNumber = Math.max(lastNumber, number)
    const { stamp = null, rollout = null, setback = null, rewritten = null, servedMs = outcome === 'succeeded' ? deployedMs : null, ...shownBody } = body
    const ours = known.get(number)
    // One that this master has adopted already keeps the spec that it goes on with; its marks are those of its deploy.
    if (ours) return Object.assign(ours, { stamp, marks, rollout, setback, rewritten, servedMs: servedMs ?? ours.servedMs })
    known.set(number, {
      release: /** @type {Release} */ ({ ...shownBody, ...words }),
      outcome: /** @type {Outcome | null} */ (outcome),
      rollout,
      deployedMs,
      servedMs,
      setback,
      marks,
      spec: null,
      stamp,
      rewritten
    })
  }

  /** Writes them all: the next time makes up for one that failed. */
  function saveAll () {
    try {
      history.releases.replace([...known].map(([number, { release, outcome, rollout, deployedMs, servedMs = null, setback = null, rewritten = null, marks, stamp }]) => {
        const { args = [], execArgv = [], environmentChanged: _, ...body } = release
        return { number, outcome, deployedMs, body: { ...body, stamp, rollout, servedMs, setback, rewritten }, arguments: { args, execArgv }, marks }
      }))
    } catch (error) {
      onError(error)
    }
  }
}

/** @param {Item} item */
function isRolledBack ({ setback }) {
  return setback?.outcome === 'rolled-back'
}

/** @param {number} ms wall time */
function isoTime (ms) {
  return new Date(ms).toISOString()
}

/** @param {Item} item wall time, ms */
function lastTouched ({ release, deployedMs }) {
  return deployedMs ?? Date.parse(release.createdAt)
}

import { checkKept, decodeCursor, encodeCursor } from '../../db/cursor.ts'
import { releaseNumber } from '../config/release-id.ts'
import { DeckError } from '../errors.ts'
import type { Drift, Release } from '../lifecycle/state.ts'
import type { Marks } from './environment.ts'
import type { LaunchSpec } from './launch-spec.ts'
import type { History } from '../../db/history.ts'
import type { ReleaseRow } from '../../db/releases.ts'
import type { Setback } from '../api/shapes.ts'

export type Catalogue = ReturnType<typeof createCatalogue>
export type Outcome = 'succeeded' | 'failed' | 'rolled-back'
/**
 * What is kept of a release beside what it is: `rollout`: of its last deploy that succeeded, or of its last one if none
 * has; `servedMs`: wall time since which it has served, as far as is known; `stamp`: of all its files, for a copy;
 * `rewritten`: how other files of its folder have changed by a later deploy from the same folder; `sameFilesUntil`: the
 * id of the newest later release from the same folder with the same files.
 */
type Facts = { rollout: number | null, servedMs: number | null, setback: Setback | null, stamp: string | null,
  rewritten: Drift | null, sameFilesUntil: string | null }
/**
 * `outcome`, `deployedMs`: of the deploy that `rollout` names; `spec`: how its workers are started, null where another
 * master has started it
 */
export type Item = Facts & { release: Release, outcome: Outcome | null, deployedMs: number | null, marks: Marks,
  spec: LaunchSpec | null }
type Use = { used: Set<string>, current: string | null }

/** Each is in the row of its release; an older version may have written fewer. */
export const NO_FACTS: Readonly<Facts> = Object.freeze({ rollout: null, servedMs: null, setback: null, stamp: null,
  rewritten: null, sameFilesUntil: null })

const CURSOR_KIND = 'd'
const MAX_LIMIT = 100
const GUARD = 'guard'

/** Keeps the known releases and gives out their numbers, `r<n>`, each of them once. */
export function createCatalogue ({ history, lastNumber, onError, now }: {
  /** has the releases of earlier masters */
  history: Pick<History, 'releases' | 'lastReleaseNumber'>,
  /** the highest n of `r<n>` that the master before knows of */
  lastNumber: number,
  onError: (error: unknown) => void,
  now: () => number
}) {
  /** By the n of `r<n>`. */
  const known: Map<number, Item> = new Map()
  readKept()

  return {
    /** The highest n given out. */
    lastNumber: () => lastNumber,

    /** `number`: that another master has given out */
    countFrom (number: number) {
      lastNumber = Math.max(lastNumber, number)
    },

    nextNumber,

    /** @returns one that was never given out, not even by a master whose upgrade failed */
    takeNumber (): number {
      lastNumber = nextNumber()
      return lastNumber
    },

    readKept,

    put (number: number, item: Item) {
      known.set(number, item)
    },

    find: (id: string): Item | undefined => known.get(releaseNumber(id)),

    mustFind,

    newestFirst: (): Item[] => [...known].sort(([a], [b]) => b - a).map(([, item]) => item),

    lastGood,

    /** @throws {DeckError} invalid-query, cursor-expired */
    page ({ limit = 50, cursor }: { limit?: number, cursor?: string | null }, cluster: Use) {
      const before = decodeCursor(CURSOR_KIND, cursor)
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const good = lastGood(cluster.current ?? '')
      const numbers = [...known.keys()].filter((number) => number < before).sort((a, b) => b - a)
      checkKept(before, () => numbers.length > 0)
      const items = numbers.slice(0, wanted).flatMap((number) => known.get(number) ?? []).map((item) =>
        viewOf(item, cluster, good)
      )
      return { items, next: numbers.length > wanted ? encodeCursor(CURSOR_KIND, numbers[wanted - 1]) : null }
    },

    show: viewOf,

    /**
     * Notes the outcome of a rollout to a release. One that has served stays a success: a later failure is its setback.
     */
    settle (
      { release: id, outcome, rollout = null, actor = 'system', reason = null }: { release: string, outcome: Outcome,
        rollout?: number | null, actor?: string, reason?: string | null }
    ) {
      const item = known.get(releaseNumber(id))
      if (!item) return
      if (outcome === 'succeeded')
        Object.assign(item, { outcome, rollout, deployedMs: now(), servedMs: now(), setback: null })
      else if (item.servedMs === null) Object.assign(item, { outcome, rollout, deployedMs: now() })
      else if (rollout !== null && !isRolledBack(item))
        item.setback = { outcome: 'failed', at: isoTime(now()), rollout, actor, reason }
      saveAll()
    },

    /** A rollback has replaced it. */
    markRolledBack (
      { release: id, ...by }: { release: string, rollout: number, actor: string, reason: string | null }
    ) {
      const item = known.get(releaseNumber(id))
      if (!item) return
      item.setback = { outcome: 'rolled-back', at: isoTime(now()), ...by }
      saveAll()
    },

    /** Forgets those that were touched longest ago. `keep`: how many. Returns the forgotten ones. */
    prune (keep: number, isNeeded: (id: string) => boolean): Release[] {
      const oldestFirst = [...known].sort(([, a], [, b]) => lastTouched(a) - lastTouched(b))
      const surplus = oldestFirst.slice(0, Math.max(0, known.size - keep)).filter(([, { release }]) =>
        !isNeeded(release.id)
      )
      for (const [number] of surplus) known.delete(number)
      if (surplus.length > 0) saveAll()
      return surplus.map(([, { release }]) => release)
    },

    save: saveAll
  }

  /**
   * Returns the last other one that has served; one that people rolled back only if there is no other, one that the
   * guard rolled back never.
   */
  function lastGood (id: string): Item | undefined {
    const others = [...known.values()].filter(({ release, servedMs }) => servedMs !== null && release.id !== id)
    const served = others.sort((a, b) => (b.servedMs ?? 0) - (a.servedMs ?? 0))
    return served.find((item) => !isRolledBack(item)) ?? served.find(({ setback }) => setback?.actor !== GUARD)
  }

  function viewOf (item: Item, { used, current }: Use, good = lastGood(current ?? '')) {
    const { release: { args: _, execArgv: __, ...release }, outcome, rollout, deployedMs, servedMs, setback } = item
    return { ...release, outcome, rollout, deployedAt: deployedMs === null ? null : isoTime(deployedMs),
      servedAt: servedMs === null ? null : isoTime(servedMs), setback, isLastGood: good?.release.id === release.id,
      inUse: used.has(release.id) }
  }

  /** @returns the one that the next new release gets */
  function nextNumber (): number {
    return Math.max(lastNumber, history.lastReleaseNumber()) + 1
  }

  /** @throws {DeckError} not-found */
  function mustFind (id: string): Item {
    const item = known.get(releaseNumber(id))
    if (!item) throw new DeckError('not-found', `Release ${id} does not exist or is no longer kept`)
    return item
  }

  /**
   * Reads the releases of the history: at the start, and again after the history was taken over from another master.
   */
  function readKept () {
    lastNumber = Math.max(lastNumber, history.lastReleaseNumber())
    try {
      for (const row of history.releases.all()) restoreRow(row)
    } catch (error) {
      onError(error)
    }
    if (known.size > 0) saveAll()
  }

  function restoreRow ({ number, outcome, deployedMs, body, arguments: words, marks }: ReleaseRow) {
    lastNumber = Math.max(lastNumber, number)
    const { facts, rest } = splitBody(body)
    facts.servedMs ??= outcome === 'succeeded' ? deployedMs : null
    const ours = known.get(number)
    // One that this master has adopted already keeps the spec that it goes on with; its marks are those of its deploy.
    if (ours) return Object.assign(ours, { ...facts, marks, servedMs: facts.servedMs ?? ours.servedMs })
    known.set(number, { ...facts, release: { ...rest, ...words } as Release, outcome: outcome as Outcome | null,
      deployedMs, marks, spec: null })
  }

  /** Writes them all: the next time makes up for one that failed. */
  function saveAll () {
    try {
      history.releases.replace([...known].map(([number, { release, outcome, deployedMs, marks, ...item }]) => {
        const { args = [], execArgv = [], environmentChanged: _, ...body } = release
        return { number, outcome, deployedMs, body: { ...body, ...splitBody(item).facts },
          arguments: { args, execArgv }, marks }
      }))
    } catch (error) {
      onError(error)
    }
  }
}

function splitBody (body: Record<string, unknown>): { facts: Facts, rest: Record<string, unknown> } {
  const isFact = ([name]: [string, unknown]) => Object.hasOwn(NO_FACTS, name)
  const all = Object.entries(body)
  return { facts: { ...NO_FACTS, ...Object.fromEntries(all.filter(isFact)) },
    rest: Object.fromEntries(all.filter((each) => !isFact(each))) }
}

function isRolledBack ({ setback }: Item) {
  return setback?.outcome === 'rolled-back'
}

/** `ms`: wall time */
function isoTime (ms: number) {
  return new Date(ms).toISOString()
}

/** `item`: wall time, ms */
function lastTouched ({ release, deployedMs }: Item) {
  return deployedMs ?? Date.parse(release.createdAt)
}

import { access } from 'node:fs/promises'
import { decodeCursor, encodeCursor } from '../../db/cursor.js'
import { DeckError } from '../errors.js'
import { changesBetween, isTheSame } from './changes.js'
import { describeFolder } from './description.js'
import { digest, digestMarks, markVariables, readVariables } from './environment.js'
import { isGit } from './git.js'
import { resolveConfigured, resolvePath } from './resolve.js'
import { createSnapshots } from './snapshots.js'

/** @typedef {ReturnType<typeof createReleases>} Releases */
/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {'succeeded' | 'failed' | 'rolled-back'} Outcome */
/**
 * What of a configuration concerns workers and is taken anew at each deploy.
 * @typedef {Pick<import('../config/config.js').Config, 'entry' | 'args' | 'execArgv' | 'env' | 'envFile'>} WorkerConfig
 * @typedef {{ config: WorkerConfig, values: import('./environment.js').Variables, marks: import('./environment.js').Marks, digest: string }} Surroundings
 * @typedef {{ release: Release, outcome: Outcome | null, rollout: number | null, deployedMs: number | null, servedMs?: number | null, marks: import('./environment.js').Marks, values: import('./environment.js').Variables | null, stamp: string | null }} Item
 */

const CURSOR_KIND = 'd'
const MAX_LIMIT = 100

/**
 * Which code runs: makes a release of what is on the disk, keeps the last ones, and knows what their workers are started
 * with. The values of variables are kept in memory alone.
 * @param {object} parts
 * @param {import('../config/config.js').Config} parts.config
 * @param {() => Promise<WorkerConfig>} [parts.reload]  reads the configuration anew
 * @param {{ folder: string, releaseFolder: string, releaseKey: () => string }} parts.dataDir
 * @param {() => string[]} [parts.inUse]  the ids of the releases that a worker or a slot has
 * @param {(id: string) => boolean} [parts.isDrifted]  whether files of it have changed since its workers loaded them
 * @param {() => string | null} [parts.current]  the id of the one that was deployed last with success
 * @param {(release: Release, actor: string) => void} [parts.onCreated]
 * @param {(error: unknown) => void} [parts.onError]  something that no deploy depends on went wrong
 * @param {() => number} [parts.now]  wall clock, ms
 */
export function createReleases ({ config, reload = async () => config, dataDir, inUse = () => [], isDrifted = () => false, current = () => null, onCreated = () => {}, onError = () => {}, now = Date.now }) {
  const snapshots = createSnapshots({ dataFolder: dataDir.folder, releaseFolder: dataDir.releaseFolder, onError })
  const key = dataDir.releaseKey()
  /** By the n of `r<n>`. @type {Map<number, Item>} */
  const known = new Map()
  let lastNumber = 0
  /** @type {Surroundings} */
  let latest
  let highestStored = () => 0
  /** The one that was given out last: its rollout may be about to begin. */
  let givenOut = ''
  /** One after the other. @type {Promise<unknown>} */
  let turn = Promise.resolve()
  /** @type {import('../../db/releases.js').ReleaseRows | null} */
  let store = null

  return {
    /**
     * To be called first.
     * @param {{ lastNumber?: number }} [start]  the highest n ever given out, as far as that is known
     * @throws {DeckError} invalid-config
     */
    async begin (start = {}) {
      lastNumber = Math.max(lastNumber, start.lastNumber ?? 0)
      latest = await surround(config)
    },

    /**
     * From now on releases are kept in the history; what earlier masters kept there is known.
     * @param {import('../../db/releases.js').ReleaseRows} rows
     * @param {() => number} highest  n ever given out, also by a master of an upgrade that came to nothing
     */
    open (rows, highest) {
      store = rows
      highestStored = highest
      lastNumber = Math.max(lastNumber, highest())
      try {
        for (const row of rows.all()) remember(row)
      } catch (error) {
        onError(error)
      }
      if (known.size > 0) save()
    },

    save,

    /** The entry as the newest configuration that could be read has it. */
    configuredEntry: () => latest.config.entry,

    /** The highest n of `r<n>` given out. */
    lastNumber: () => lastNumber,

    /** @param {number} pid @returns {boolean} whether it is a child of these modules */
    isChild: isGit,

    /**
     * The first release of a master that starts: from the configuration as it has just been read.
     * @param {{ actor: string }} start
     * @returns {Promise<Release>} as of prepare
     * @throws {DeckError} as prepare
     */
    first: ({ actor }) => inTurn(() => make(latest, { actor, note: null })),

    /**
     * Makes a release of the code that is on the disk now, or finds the one that it still is.
     * @param {{ path?: string, actor: string, note?: string | null }} wanted  `path`: a folder below `releases.root`
     * @returns {Promise<Release>}
     * @throws {DeckError} entry-not-found, path-refused, snapshot-failed, invalid-config; then nothing has changed
     */
    prepare: ({ path: wanted, actor, note = null }) => inTurn(async () => make(await surround(await reloaded()), { path: wanted, actor, note })),

    /**
     * What can be told at once of a deploy that will fail.
     * @param {{ path?: string }} wanted
     * @throws {DeckError} entry-not-found, path-refused, invalid-config
     */
    async check ({ path: wanted }) {
      const { config: { entry } } = await surround(await reloaded())
      if (wanted !== undefined) await resolvePath(wanted, { root: config.releases.root, entry, cwd: config.cwd })
      else await resolveConfigured({ entry, cwd: config.cwd, mode: config.releases.mode })
    },

    /** @param {string} id @returns {string} the one that ran before, as far as is known @throws {DeckError} not-found */
    before (id) {
      const last = lastGood(id)
      if (!last) throw new DeckError('not-found', `No other release than ${id} has been deployed with success`)
      return last.release.id
    },

    /**
     * The release that ran under another master, as its memory has it. Its variables are read anew, as no memory has them.
     * @param {Release} release
     * @returns {Release}
     */
    adopt (release) {
      const { environmentChanged: _, ...before } = { args: config.args, execArgv: config.execArgv, ...release }
      const isOther = before.environment !== undefined && before.environment.digest !== latest.digest
      const adopted = isOther ? { ...before, environmentChanged: true } : before
      const number = numberOf(release.id)
      lastNumber = Math.max(lastNumber, number)
      // The marks are those of its deploy, where they are known.
      known.set(number, { outcome: 'succeeded', rollout: null, deployedMs: null, servedMs: now(), marks: latest.marks, stamp: null, ...known.get(number), release: adopted, values: latest.values })
      return adopted
    },

    /**
     * A release to go back to, with what its workers were started with. What this master has not started itself gets the
     * variables that were read last: going back must work whatever the configuration looks like by then.
     * @param {string} id
     * @returns {Promise<Release>}
     * @throws {DeckError} not-found, release-gone
     */
    async load (id) {
      const item = mustFind(id)
      const { entry } = item.release
      await access(entry).catch((error) => {
        throw new DeckError('release-gone', `release ${id} cannot run any more: ${entry} is gone`, { cause: error })
      })
      if (item.values === null) {
        item.values = latest.values
        if (item.release.environment?.digest !== latest.digest) item.release = { ...item.release, environmentChanged: true }
      }
      givenOut = id
      return item.release
    },

    /** @param {string} id @returns {Record<string, any>} as in list @throws {DeckError} not-found */
    get: (id) => shown(mustFind(id), new Set(inUse())),

    /**
     * Newest first, without what nobody is to see.
     * @param {{ limit?: number, cursor?: string | null }} [query] `limit` 1…100
     * @returns {{ items: Record<string, any>[], next: string | null }}
     * @throws {DeckError} invalid-query
     */
    list ({ limit = 50, cursor } = {}) {
      const before = decodeCursor(CURSOR_KIND, cursor)
      const wanted = Math.min(Math.max(Math.trunc(limit) || 1, 1), MAX_LIMIT)
      const numbers = [...known.keys()].filter((number) => number < before).sort((a, b) => b - a)
      const used = new Set(inUse())
      const items = numbers.slice(0, wanted).map((number) => shown(/** @type {Item} */ (known.get(number)), used))
      return { items, next: numbers.length > wanted ? encodeCursor(CURSOR_KIND, numbers[wanted - 1]) : null }
    },

    /** @param {string} id @returns {import('./environment.js').Variables} what its workers get over the master's own variables */
    environment: (id) => known.get(numberOf(id))?.values ?? latest.values,

    /**
     * What came of it, the last time that it was deployed.
     * @param {{ release: string, outcome: Outcome, rollout?: number | null }} end  `rollout`: null where it was the first one of a master
     */
    settle ({ release: id, outcome, rollout = null }) {
      const item = known.get(numberOf(id))
      if (!item) return
      Object.assign(item, { outcome, rollout, deployedMs: now(), ...(outcome === 'succeeded' ? { servedMs: now() } : {}) })
      save()
    },

    /**
     * Forgets the oldest releases, and removes their snapshots in the background.
     * @returns {Promise<void>} when they are gone; never rejects
     */
    async prune () {
      // Without the one to go back to, a rollback would have nowhere to go.
      const used = new Set([...inUse(), givenOut, lastGood(current() ?? '')?.release.id])
      const oldestFirst = [...known].sort(([, a], [, b]) => lastTouched(a) - lastTouched(b))
      const surplus = oldestFirst.slice(0, Math.max(0, known.size - config.releases.keep)).filter(([, { release }]) => !used.has(release.id))
      if (surplus.length === 0) return
      for (const [number] of surplus) known.delete(number)
      save()
      await Promise.all(surplus.filter(([, { release }]) => release.mode === 'snapshot').map(([, { release }]) => snapshots.remove(release.id)))
    },

    /**
     * Removes what an earlier master has left unfinished, and snapshots that nobody knows. To be called once everything
     * that still runs is in use.
     * @returns {Promise<void>} never rejects
     */
    async clean () {
      const used = new Set([...inUse(), givenOut])
      await Promise.all(snapshots.names().filter((name) => !used.has(name) && !known.has(numberOf(name))).map(snapshots.remove))
    }
  }

  /** @param {string} id @returns {Item | undefined} the last other one that has served */
  function lastGood (id) {
    return [...known.values()].filter(({ release, servedMs }) => servedMs != null && release.id !== id).sort((a, b) => (b.servedMs ?? 0) - (a.servedMs ?? 0))[0]
  }

  /** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  function inTurn (work) {
    const result = turn.then(work)
    turn = result.catch(() => {})
    return result
  }

  /** @returns {Promise<WorkerConfig>} */
  async function reloaded () {
    try {
      return await reload()
    } catch (/** @type {any} */ error) {
      // A name that is none is as wrong in a file as any value.
      if (error.code === 'unknown-option') throw new DeckError('invalid-config', error.message, { cause: error })
      throw error
    }
  }

  /** @param {WorkerConfig} workerConfig @returns {Promise<Surroundings>} */
  async function surround (workerConfig) {
    const values = await readVariables(workerConfig)
    const marks = markVariables(values, key)
    return { config: workerConfig, values, marks, digest: digestMarks(key, marks) }
  }

  /**
   * @param {Surroundings} surroundings
   * @param {{ path?: string, actor: string, note: string | null }} wanted
   * @returns {Promise<Release>}
   */
  async function make (surroundings, { path: wanted, actor, note }) {
    const { entry, args, execArgv } = surroundings.config
    const { mode, root } = config.releases
    const place = wanted === undefined
      ? await resolveConfigured({ entry, cwd: config.cwd, mode })
      : await resolvePath(wanted, { root, entry, cwd: config.cwd })
    const tree = mode === 'snapshot' ? await snapshots.look(place) : null
    const stamp = tree?.digest ?? null
    const about = {
      cwd: place.cwd,
      ...('calledAs' in place && { calledAs: place.calledAs }),
      source: tree && place.folder,
      ...await describeFolder(place.folder),
      environment: { digest: surroundings.digest, names: Object.keys(surroundings.values).sort() },
      arguments: { digest: digest(key, [args, execArgv]) },
      args,
      execArgv
    }
    const found = { mode: tree ? /** @type {const} */ ('snapshot') : place.mode, entry: place.entry, path: place.folder }
    const same = await findSame({ ...found, ...about }, stamp)
    if (same) {
      latest = surroundings
      same.values = surroundings.values
      givenOut = same.release.id
      return same.release
    }
    const number = Math.max(lastNumber, highestStored()) + 1
    lastNumber = number
    const id = `r${number}`
    const kept = tree ? await snapshots.keep(id, place, tree) : found
    const before = known.get(numberOf(current() ?? '')) ?? newestFirst().find(({ outcome }) => outcome === 'succeeded')
    const { marks, values } = surroundings
    const changed = before ? changesBetween(before, { release: { ...kept, ...about }, marks }) : null
    /** @type {Release} */
    const release = { id, ...kept, createdAt: new Date(now()).toISOString(), ...about, changed, createdBy: actor, note }
    latest = surroundings
    known.set(number, { release, outcome: null, rollout: null, deployedMs: null, marks, values, stamp })
    givenOut = id
    save()
    onCreated(release, actor)
    return release
  }

  /**
   * The release that the code on the disk still is.
   * @param {Omit<Release, 'id' | 'createdAt'>} found @param {string | null} stamp of all files, for a snapshot
   * @returns {Promise<Item | undefined>}
   */
  async function findSame (found, stamp) {
    const same = newestFirst().find((item) => isTheSame(item.release, found) && item.stamp === stamp && !isDrifted(item.release.id))
    return same && await access(same.release.entry).then(() => same, () => undefined)
  }

  function newestFirst () {
    return [...known].sort(([a], [b]) => b - a).map(([, item]) => item)
  }

  /** @param {string} id @returns {Item} */
  function mustFind (id) {
    const item = known.get(numberOf(id))
    if (!item) throw new DeckError('not-found', `There is no release ${id}`)
    return item
  }

  /** @param {import('../../db/releases.js').ReleaseRow} row */
  function remember ({ number, outcome, deployedMs, body, arguments: words, marks }) {
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
function shown ({ release: { args: _, execArgv: __, ...release }, outcome, rollout, deployedMs }, used) {
  return { ...release, outcome, rollout, deployedAt: deployedMs === null ? null : new Date(deployedMs).toISOString(), inUse: used.has(release.id) }
}

/** @param {Item} item wall time, ms */
function lastTouched ({ release, deployedMs }) {
  return deployedMs ?? Date.parse(release.createdAt)
}

/** @param {string} id @returns {number} 0 for what is none */
function numberOf (id) {
  return Number(/^r([1-9]\d{0,8})$/.exec(id)?.[1] ?? 0)
}

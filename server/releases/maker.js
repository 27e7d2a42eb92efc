import { access } from 'node:fs/promises'
import { changesBetween, isTheSame } from './changes.js'
import { describeFolder } from './description.js'
import { keyedDigest } from './environment.js'
import { resolveConfigured, resolvePath } from './resolve.js'

/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('./catalogue.js').Item} Item */
/** @typedef {import('./launch-spec.js').LaunchSpec} LaunchSpec */

/**
 * Makes a release of the code on the disk and of what its workers are started with.
 * @param {object} parts
 * @param {Pick<import('../config/config.js').Config, 'releases'>} parts.config  as the master was started with
 * @param {string} parts.key  of digests
 * @param {ReturnType<typeof import('./catalogue.js').createCatalogue>} parts.catalogue  gets the releases
 * @param {ReturnType<typeof import('./snapshots.js').createSnapshots>} parts.snapshots
 * @param {Pick<import('./drift.js').Drift, 'of'>} parts.drift
 * @param {Record<string, string | undefined>} parts.inherited  by git
 * @param {() => string | null} parts.current  the id of the last release that was deployed successfully
 * @param {() => number} parts.now  wall clock, ms
 */
export function createMaker ({ config, key, catalogue, snapshots, drift, inherited, current, now }) {
  return { make: makeRelease, locate: locatePlace }

  /**
   * @param {LaunchSpec} spec
   * @param {{ path?: string, actor: string, note: string | null }} wanted
   * @returns {Promise<{ release: Release, isNew: boolean }>} `isNew: false`: the code on the disk is still that of a known one
   * @throws {import('../errors.js').DeckError} entry-not-found, path-refused, snapshot-failed; then nothing has changed
   */
  async function makeRelease (spec, { path, actor, note }) {
    const place = await locatePlace(spec, path)
    const tree = config.releases.mode === 'snapshot' ? await snapshots.look(place) : null
    const stamp = tree?.digest ?? null
    /** @type {Pick<Release, 'mode' | 'entry' | 'path'>} */
    const found = { mode: tree ? 'snapshot' : place.mode, entry: place.entry, path: place.folder }
    const about = await describeRelease(spec, place, tree)
    const same = await findSame({ ...found, ...about }, stamp)
    if (same) {
      same.values = spec.values
      return { release: same.release, isNew: false }
    }
    const number = catalogue.takeNumber()
    const id = `r${number}`
    const kept = tree ? await snapshots.keep(id, place, tree) : found
    /** @type {Release} */
    const release = { id, ...kept, createdAt: new Date(now()).toISOString(), ...about, changed: changesTo({ ...kept, ...about }, spec), createdBy: actor, note }
    catalogue.put(number, { release, outcome: null, rollout: null, deployedMs: null, marks: spec.marks, values: spec.values, stamp })
    catalogue.save()
    return { release, isNew: true }
  }

  /** @param {LaunchSpec} spec @param {string} [path] */
  function locatePlace ({ config: { entry, cwd } }, path) {
    const { mode, root } = config.releases
    return path === undefined ? resolveConfigured({ entry, cwd, mode }) : resolvePath(path, { root, entry, cwd })
  }

  /** @param {LaunchSpec} spec @param {Awaited<ReturnType<typeof locatePlace>>} place @param {unknown} tree  of a snapshot */
  async function describeRelease ({ config: { args, execArgv }, values, digest: environment }, place, tree) {
    return {
      cwd: place.cwd,
      ...('calledAs' in place && { calledAs: place.calledAs }),
      source: tree ? place.folder : null,
      ...await describeFolder(place.folder, { env: inherited }),
      environment: { digest: environment, names: Object.keys(values).sort() },
      arguments: { digest: keyedDigest(key, [args, execArgv]) },
      args,
      execArgv
    }
  }

  /**
   * Finds the known release that still has the code on the disk.
   * @param {Omit<Release, 'id' | 'createdAt'>} found @param {string | null} stamp of all files, for a snapshot
   * @returns {Promise<Item | undefined>}
   */
  async function findSame (found, stamp) {
    const same = catalogue.newestFirst().find((item) => isTheSame(item.release, found) && item.stamp === stamp && drift.of(item.release.id) === null)
    return same && await access(same.release.entry).then(() => same, () => undefined)
  }

  /** @param {Omit<Release, 'id' | 'createdAt'>} release @param {LaunchSpec} spec */
  function changesTo (release, { marks }) {
    const before = catalogue.find(current() ?? '') ?? catalogue.newestFirst().find(({ outcome }) => outcome === 'succeeded')
    return before ? changesBetween(before, { release, marks }) : null
  }
}

import { access } from 'node:fs/promises'
import { changesBetween, isTheSame } from './changes.js'
import { describeFolder } from './description.js'
import { keyedDigest } from './environment.js'
import { partsLeftOut } from './file-differences.js'
import { pinOptions, resolveConfigured, resolvePath } from './resolve.js'

/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('./catalogue.js').Item} Item */
/** @typedef {import('./launch-spec.js').LaunchSpec} LaunchSpec */

/**
 * Makes a release of the code on the disk and of what its workers are started with: first a draft, which changes nothing, then the release.
 * @param {object} parts
 * @param {Pick<import('../config/config.js').Config, 'releases'>} parts.config  as the master was started with
 * @param {string} parts.key  of digests
 * @param {ReturnType<typeof import('./catalogue.js').createCatalogue>} parts.catalogue  gets the releases
 * @param {ReturnType<typeof import('./release-folders.js').createReleaseFolders>} parts.folders
 * @param {Pick<import('./drift.js').Drift, 'of'>} parts.drift
 * @param {Record<string, string | undefined>} parts.inherited  by git
 * @param {() => string | null} parts.current  the id of the last release that was deployed successfully
 * @param {() => number} parts.now  wall clock, ms
 */
export function createMaker ({ config, key, catalogue, folders, drift, inherited, current, now }) {
  return { draft: draftRelease, checkWritten, checkLeftBehind, make: makeRelease, add: addRelease, describe: describeRelease, startedWith, locate: locatePlace }

  /**
   * @param {LaunchSpec} spec
   * @param {{ path?: string, mode?: 'folder', actor: string, note: string | null }} wanted  `mode`: in place of the configured one
   * @returns {Promise<{ release: Release, isNew: boolean }>} `isNew: false`: the code on the disk is still that of a known one
   * @throws {import('../errors.js').DeckError} entry-not-found, path-refused, copy-failed, unshared-files; then nothing has changed
   */
  async function makeRelease (spec, { path, mode, actor, note }) {
    const { copy, stamp, found, about, same, execArgv } = await draftRelease(spec, path, mode)
    if (copy) await checkWritten(spec, copy.place.folder)
    if (same) {
      same.spec = spec
      return { release: same.release, isNew: false }
    }
    const number = catalogue.takeNumber()
    const kept = copy ? await folders.keep(`r${number}`, copy, execArgv) : { ...found, execArgv }
    return { release: addRelease(spec, { ...about, ...kept }, { number, stamp, actor, note }), isNew: true }
  }

  /**
   * @param {LaunchSpec} spec @param {Omit<Release, 'id' | 'createdAt'>} what
   * @param {{ number: number, stamp: string | null, actor: string, note: string | null }} by `number`: that was taken for it
   * @returns {Release} which is known from now on
   */
  function addRelease (spec, what, { number, stamp, actor, note }) {
    /** @type {Release} */
    const release = { id: `r${number}`, ...what, createdAt: new Date(now()).toISOString(), changed: changesTo(what, spec), createdBy: actor, note }
    catalogue.put(number, { release, outcome: null, rollout: null, deployedMs: null, marks: spec.marks, spec, stamp })
    catalogue.save()
    return release
  }

  /**
   * What would be made, without making it.
   * @param {LaunchSpec} spec @param {string} [path]  that was named @param {'folder'} [mode]
   * @throws {import('../errors.js').DeckError} entry-not-found, path-refused, copy-failed, invalid-config
   */
  async function draftRelease (spec, path, mode) {
    const place = await locatePlace(spec, path)
    const execArgv = await pinOptions(spec.config.execArgv)
    const copy = (mode ?? config.releases.mode) === 'folder' ? await draftCopy(spec, place, path) : null
    const stamp = copy?.digest ?? null
    /** @type {Pick<Release, 'mode' | 'entry' | 'path' | 'cwd' | 'calledAs'>} */
    const found = { mode: copy ? 'folder' : place.mode, entry: place.entry, path: place.folder, cwd: place.cwd, ...('calledAs' in place && { calledAs: place.calledAs }) }
    const about = await describeRelease(spec, place, copy)
    return { place, copy, stamp, found, about, execArgv, same: await findSame({ ...found, ...about }, stamp), changed: changesTo({ ...found, ...about }, spec) }
  }

  /**
   * @param {LaunchSpec} spec @param {import('./resolve.js').Place} place @param {string} [path]  that was named
   * @returns {Promise<import('./release-folders.js').Draft>}
   */
  async function draftCopy ({ config: { entry, cwd, runtime, releases: { shared, exclude } } }, place, path) {
    const home = path === undefined ? place.folder : (await resolveConfigured({ entry, cwd, mode: 'live', runtime })).folder
    return await folders.look(place, { shared, exclude, home, runtime })
  }

  /**
   * @param {Pick<LaunchSpec, 'config'>} spec of the release that would take the place of the running one @param {string} home  the app's package folder
   * @throws {import('../errors.js').DeckError} unshared-files
   */
  async function checkWritten ({ config: { releases: { shared, exclude } } }, home) {
    const running = catalogue.find(current() ?? '')?.release
    if (running?.mode === 'folder') await folders.checkWritten(running, { shared, exclude, home })
  }

  /**
   * As checkWritten(), for a release that is made of a commit: what the app has in its own folder beside that is not in it either.
   * @param {Pick<LaunchSpec, 'config'>} spec @param {string} home @throws {import('../errors.js').DeckError} unshared-files
   */
  async function checkLeftBehind (spec, home) {
    await checkWritten(spec, home)
    // What is of a commit already has run without it.
    if (catalogue.find(current() ?? '')?.release.build === undefined) await folders.checkOwnFolder(home, { left: partsLeftOut(spec.config), env: inherited })
  }

  /** @param {Pick<LaunchSpec, 'config'>} spec @param {string} [path] */
  function locatePlace ({ config: { entry, cwd, runtime } }, path) {
    const { mode, root } = config.releases
    return path === undefined ? resolveConfigured({ entry, cwd, mode, runtime }) : resolvePath(path, { root, entry, cwd, runtime })
  }

  /** @param {LaunchSpec} spec @param {{ folder: string }} place @param {unknown} [draft]  of a copy */
  async function describeRelease (spec, place, draft) {
    return { source: draft ? place.folder : null, ...await describeFolder(place.folder, { env: inherited }), ...startedWith(spec) }
  }

  /** @param {LaunchSpec} spec @returns what of a release is of its options alone */
  function startedWith ({ config: { args, execArgv, runtime }, values, digest: environment }) {
    return {
      environment: { digest: environment, names: Object.keys(values).sort() },
      arguments: { digest: keyedDigest(key, [args, execArgv]) },
      args,
      execArgv,
      runtime
    }
  }

  /**
   * Finds the known release that still has the code on the disk.
   * @param {Omit<Release, 'id' | 'createdAt'>} found @param {string | null} stamp of all files, for a copy
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

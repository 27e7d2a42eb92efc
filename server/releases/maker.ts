import { access } from 'node:fs/promises'
import { changesBetween, isTheSame } from './changes.ts'
import { describeFolder } from './description.ts'
import { keyedDigest } from './environment.ts'
import { partsLeftOut } from './file-differences.ts'
import { isAskedFor } from '../system/app-node.ts'
import { pinOptions, resolveConfigured, resolvePath, type Place } from './resolve.ts'
import type { Release } from '../lifecycle/state.ts'
import { NO_FACTS, type Item } from './catalogue.ts'
import type { LaunchSpec } from './launch-spec.ts'
import type { Draft } from './release-folders.ts'
import type { Stock } from './stock.ts'

/**
 * Makes a release of the code on the disk and of what its workers are started with: first a draft, which changes
 * nothing, then the release.
 */
export function createMaker ({ config, key, catalogue, folders, drift, inherited, running: findRunning, now }: Stock) {
  return { draft: draftRelease, checkWritten, checkLeftBehind, make: makeRelease, add: addRelease,
    describe: describeRelease, startedWith, locate: locatePlace }

  /**
   * @param wanted `mode`: in place of the configured one
   * @returns `isNew: false`: the code on the disk is still that of a known one
   * @throws {import('../errors.ts').DeckError} entry-not-found, path-refused, copy-failed, unshared-files; then nothing
   * has changed
   */
  async function makeRelease (spec: LaunchSpec,
    { path, mode, actor, note }: { path?: string, mode?: 'folder', actor: string, note: string | null }
  ): Promise<{ release: Release, isNew: boolean }> {
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

  /** `number`: that was taken for it @returns which is known from now on */
  function addRelease (spec: LaunchSpec, what: Omit<Release, 'id' | 'createdAt'>,
    { number, stamp, actor, note }: { number: number, stamp: string | null, actor: string,
      note: string | null }): Release
  {
    const release: Release = { id: `r${number}`, ...what, createdAt: new Date(now()).toISOString(),
      changed: changesTo(what, spec), createdBy: actor, note }
    catalogue.put(number, { ...NO_FACTS, release, outcome: null, deployedMs: null, marks: spec.marks, spec, stamp })
    catalogue.save()
    return release
  }

  /**
   * What would be made, without making it. `path`: that was named.
   * @throws {import('../errors.ts').DeckError} entry-not-found, path-refused, copy-failed, invalid-config
   */
  async function draftRelease (spec: LaunchSpec, path?: string, mode?: 'folder') {
    const place = await locatePlace(spec, path)
    const execArgv = await pinOptions(spec.config.execArgv)
    const copy = (mode ?? config.releases.mode) === 'folder' ? await draftCopy(spec, place, path) : null
    const stamp = copy?.digest ?? null
    const found: Pick<Release, 'mode' | 'entry' | 'path' | 'cwd' | 'calledAs'> = { mode: copy ? 'folder' : place.mode,
      entry: place.entry, path: place.folder, cwd: place.cwd, ...('calledAs' in place && { calledAs: place.calledAs }) }
    const about = await describeRelease(spec, place, copy)
    return { place, copy, stamp, found, about, execArgv, same: await findSame({ ...found, ...about }, stamp),
      changed: changesTo({ ...found, ...about }, spec) }
  }

  /** `path`: that was named */
  async function draftCopy ({ config: { entry, cwd, runtime, releases: { shared, exclude } } }: LaunchSpec,
    place: Place, path?: string): Promise<Draft>
  {
    const home = path === undefined
      ? place.folder
      : (await resolveConfigured({ entry, cwd, mode: 'live', runtime })).folder
    return await folders.look(place, { shared, exclude, home, runtime })
  }

  /**
   * `spec`: of the release that would take the place of the running one; `home`: the app's package folder.
   * @throws {import('../errors.ts').DeckError} unshared-files
   */
  async function checkWritten ({ config: { releases: { shared, exclude } } }: Pick<LaunchSpec, 'config'>,
    home: string)
  {
    const running = findRunning()?.release
    if (running?.mode === 'folder') await folders.checkWritten(running, { shared, exclude, home })
  }

  /**
   * As checkWritten(), for a release that is made of a commit: what the app has in its own folder beside that is not in
   * it either.
   * @throws {import('../errors.ts').DeckError} unshared-files
   */
  async function checkLeftBehind (spec: Pick<LaunchSpec, 'config'>, home: string) {
    await checkWritten(spec, home)
    // What is of a commit already has run without it.
    if (findRunning()?.release.build === undefined)
      await folders.checkOwnFolder(home, { left: partsLeftOut(spec.config), env: inherited })
  }

  function locatePlace ({ config: { entry, cwd, runtime } }: Pick<LaunchSpec, 'config'>, path?: string) {
    const { mode, root } = config.releases
    return path === undefined
      ? resolveConfigured({ entry, cwd, mode, runtime })
      : resolvePath(path, { root, entry, cwd, runtime })
  }

  /** `draft`: of a copy */
  async function describeRelease (spec: LaunchSpec, place: { folder: string }, draft?: unknown) {
    return { source: draft ? place.folder : null, ...await describeFolder(place.folder, { env: inherited }),
      ...startedWith(spec) }
  }

  /** @returns what of a release is of its options alone */
  function startedWith (
    { config: { args, execArgv, runtime, entry, appNode }, values, digest: environment }: LaunchSpec
  ) {
    return { environment: { digest: environment, names: Object.keys(values).sort() },
      arguments: { digest: keyedDigest(key, [args, execArgv]) }, args, execArgv, runtime,
      ...(appNode && (runtime !== 'other' || entry === appNode.file || isAskedFor(appNode)) && { node: appNode }) }
  }

  /** Finds the known release that still has the code on the disk. `stamp`: of all files, for a copy. */
  async function findSame (found: Omit<Release, 'id' | 'createdAt'>, stamp: string | null): Promise<Item | undefined> {
    const same = catalogue.newestFirst().find((item) =>
      isTheSame(item.release, found) && item.stamp === stamp && drift.of(item.release.id) === null
    )
    return same && await access(same.release.entry).then(() => same, () => undefined)
  }

  function changesTo (release: Omit<Release, 'id' | 'createdAt'>, { marks }: LaunchSpec) {
    const before = findRunning() ?? catalogue.newestFirst().find(({ outcome }) => outcome === 'succeeded')
    return before ? changesBetween(before, { release, marks }) : null
  }
}

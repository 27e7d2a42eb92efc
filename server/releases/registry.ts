import { errorText } from '../errors.ts'
import { shownRelease, type Release } from '../lifecycle/state.ts'
import { createSemaphore } from '../system/semaphore.ts'
import { isSecretsCommand } from './secrets-command.ts'
import { createCommitFinder } from './commit-finder.ts'
import { createCommitPreview } from './commit-preview.ts'
import { partsLeftOut } from './file-differences.ts'
import { adoptRelease, lastOfCommit } from './first-release.ts'
import { isGit } from './git.ts'
import { createGitReleases } from './git-releases.ts'
import { openLaunches } from './launches.ts'
import { createMaker } from './maker.ts'
import { createPreviews } from './previews.ts'
import { ownFolder } from './resolve.ts'
import { createReturns } from './returns.ts'
import { createShownReleases } from './shown-releases.ts'
import { createStock, type ReleaseServices } from './stock.ts'
import type { LaunchSpec } from './launch-spec.ts'

export type Releases = Awaited<ReturnType<typeof openReleases>>

/**
 * Makes releases of the code on the disk, keeps the last ones, and knows how their workers are started.
 * @throws {DeckError} invalid-config, secrets-failed
 */
export async function openReleases (services: ReleaseServices) {
  const stock = createStock(services)
  const { config, events, catalogue, folders, manifests, inPlace } = stock
  const maker = createMaker(stock)
  const ofCommit = stock.before ?? await lastOfCommit(stock)
  const launches = await openLaunches(stock, maker, ofCommit?.cwd ?? config.cwd)
  const commits = createCommitFinder(stock, launches)
  const returns = createReturns(stock, launches)
  const parts = { maker, launches, commits, returns }
  const git = createGitReleases(stock, parts, onMade)
  /**
   * The release that this master has made at its start: its files are listed afterwards, as no start is to wait for
   * that.
   */
  let unlisted: Release | null = null
  /** Releases are made one after the other. */
  const turns = createSemaphore(1)

  return {
    ...launches.shown,
    ...returns,
    ...createShownReleases(stock, () => partsLeftOut(launches.latest().config)),
    readKept: catalogue.readKept,
    close: manifests.close,
    save: catalogue.save,
    settle: catalogue.settle,
    markRolledBack: catalogue.markRolledBack,
    lastNumber: catalogue.lastNumber,
    planGit: git.plan,
    changedInPlace: inPlace.look,
    tellCreated,

    /** @returns with its arguments, which are never shown */
    find: (id: string): Release | undefined => catalogue.find(id)?.release,

    /** Tells whether it is a process that these modules have started */
    isChild: (pid: number): boolean => isGit(pid) || isSecretsCommand(pid),

    /**
     * The release that a master begins with: that of the master before, or the last one where that was made of a
     * commit, as the folder of the app may have another one; else one of the present configuration, unless that was
     * tried already, and the last one has run in its place since. Returns `isNew`: the caller has to publish it by
     * `tellCreated`, once the start cannot fail any more.
     * @throws {DeckError} as prepare
     */
    async begin (): Promise<{ release: Release, isNew: boolean }> {
      if (ofCommit) return goOnWith(ofCommit)
      const made = await turns.run(() => makeRelease(launches.latest(), { actor: 'system', note: null }))
      const { last } = stock
      if (last && last.id !== made.release.id && !made.isNew &&
        catalogue.newestFirst()[0]?.release.id === made.release.id)
        return goOnWith(last)
      unlisted = made.release
      return made
    },

    /**
     * Reads the secrets that are missing. Returns the release that this master has begun with, which can run now; null:
     * they could not be read.
     */
    readMissing: async (): Promise<Release | null> =>
      await launches.readMissing() && stock.first ? adoptRelease(stock, launches, stock.first) : null,

    /**
     * Makes a release of the code that is on the disk now, or finds the one that it still is.
     * @param wanted `path`: a folder below
     * `releases.root`; `mode`: in place of `releases.mode`; `spec`: as `check` has read it
     * @throws {DeckError} entry-not-found, path-refused, copy-failed, unshared-files, invalid-config; then nothing has
     * changed
     */
    prepare: prepareRelease,

    refs: (() => commits.refs()) as typeof commits.refs,

    /**
     * The release for a rollout: a known one, or one of the code on the disk.
     * @throws {DeckError} as prepare and load
     */
    forRollout: ({ release, ...source }: { release?: string, path?: string, mode?: 'folder', spec?: LaunchSpec },
      by: { note: string | null, actor: string }): Promise<Release> =>
      release === undefined ? prepareRelease({ ...source, ...by }) : returns.load(release),

    /**
     * Refuses at once a deploy that would fail.
     * @returns for `prepare`, so that the configuration is read once
     * @throws {DeckError} entry-not-found, path-refused, invalid-config, secrets-failed
     */
    check: async ({ path }: { path?: string }): Promise<LaunchSpec> => await launches.readSpec(path),

    preview: { ...createPreviews(stock, parts), ofCommit: createCommitPreview(stock, parts) },

    /**
     * What the app has written into the folder of the release that runs, and the next release would not find. Returns
     * null: it has no folder of its own; `home`: the app's folder.
     * @throws {DeckError} copy-failed
     */
    async written (): Promise<{ release: string, home: string, copy: string, files: string[], bytes: number } | null> {
      const release = stock.running()?.release
      if (release?.mode !== 'folder') return null
      const { config } = launches.latest()
      return { release: release.id, home: await ownFolder(config), ...await folders.written(release, config.releases) }
    },

    /** `id`: the one that a master has begun with, which may never have served before another one was deployed */
    settleFirst (id: string) {
      // If it served under the master before, it was deployed then, not now.
      const item = catalogue.find(id)
      if (item?.outcome !== 'succeeded' || item.deployedMs === null) {
        catalogue.settle({ release: id, outcome: stock.current() === id ? 'succeeded' : 'failed', rollout: null })
      }
      listUnlisted()
      prune()
    },

    /**
     * Says why a release cannot come back with the code that it has served with. Where it ran in place, its folder is
     * compared first. Returns null: it can, as far as is known.
     */
    async whyNoReturn (id: string): Promise<string | null> {
      listUnlisted()
      await manifests.settled()
      try {
        returns.checkReturn(id)
        return null
      } catch (error) {
        return errorText(error)
      }
    },

    prune,

    /**
     * Removes unfinished copies of an earlier master, and folders of no known release. It must not be called before the
     * cluster has its workers, as their releases are in use.
     * @returns never rejects
     */
    async clean (): Promise<void> {
      const needed = stock.used().add(stock.givenOut)
      await Promise.all(
        folders.names().filter((name) => !needed.has(name) && !catalogue.find(name)).map(folders.remove)
      )
      await git.prune()
    }
  }

  function goOnWith (release: Release) {
    stock.first = release
    return { release: adoptRelease(stock, launches, release), isNew: false }
  }

  function prepareRelease (
    { path, mode, spec, actor, note = null }: { path?: string, mode?: 'folder', spec?: LaunchSpec, actor: string,
      note?: string | null }
  ) {
    return turns.run(async () => {
      const { release, isNew } = await makeRelease(spec ?? await launches.readSpec(path), { path, mode, actor, note })
      listFiles(release)
      if (isNew) tellCreated(release)
      return release
    })
  }

  function listUnlisted () {
    if (unlisted) listFiles(unlisted)
    unlisted = null
  }

  /** `release`: has just been made of what is in its folder */
  function listFiles (release: Release) {
    manifests.note(release, partsLeftOut(launches.latest().config))
  }

  function onMade (release: Release, spec: LaunchSpec) {
    launches.use(spec)
    stock.givenOut = release.id
    tellCreated(release)
  }

  async function makeRelease (spec: LaunchSpec,
    wanted: { path?: string, mode?: 'folder', actor: string, note: string | null })
  {
    const made = await maker.make(spec, wanted)
    launches.use(spec)
    stock.givenOut = made.release.id
    return made
  }

  /**
   * Forgets the oldest releases, and removes their folders in the background.
   * @returns when they are gone; never rejects
   */
  async function prune (): Promise<void> {
    // The release to roll back to has to stay.
    const needed = stock.used().add(stock.givenOut).add(catalogue.lastGood(stock.current() ?? '')?.release.id ?? '')
    const forgotten = catalogue.prune(config.releases.keep, (id) => needed.has(id))
    if (forgotten.length > 0) await manifests.prune()
    await Promise.all(forgotten.filter(({ mode }) => mode === 'folder').map(({ id }) => folders.remove(id)))
    if (forgotten.length > 0) await git.prune()
  }

  function tellCreated (release: Release) {
    events.publish({ type: 'release.created', release: release.id, actor: release.createdBy ?? 'system',
      detail: shownRelease(release) })
  }
}

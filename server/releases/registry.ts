import { access, realpath } from 'node:fs/promises'
import { formatCommit } from '../../public/format.ts'
import { releaseNumber } from '../config/release-id.ts'
import { DeckError } from '../errors.ts'
import { caveatText, changeText } from '../lifecycle/drift.ts'
import { shownRelease, type Release } from '../lifecycle/state.ts'
import { isOldNode, isProgram } from '../system/app-node.ts'
import { createCatalogue, type Item } from './catalogue.ts'
import { changesBetween } from './changes.ts'
import { createCommitFinder } from './commit-finder.ts'
import { createCommitPreview } from './commit-preview.ts'
import { commitsBetween } from './commits.ts'
import { createDrift, type Drift } from './drift.ts'
import { partsLeftOut } from './file-differences.ts'
import { isGit } from './git.ts'
import { createGitReleases } from './git-releases.ts'
import { createInPlace } from './in-place.ts'
import { readLaunchSpec, reloadConfig, type LaunchSource, type LaunchSpec, type WorkerConfig } from './launch-spec.ts'
import { createMaker } from './maker.ts'
import { createManifests } from './manifests.ts'
import { createModuleCache } from './module-cache.ts'
import { createPreviews } from './previews.ts'
import { createReleaseFolders } from './release-folders.ts'
import { folderBelow, ownFolder, placeIn } from './resolve.ts'
import { createSecretMask, type SecretMask } from './secret-mask.ts'
import { isSecretsCommand } from './secrets-command.ts'
import type { Config } from '../config/config.ts'
import type { History } from '../../db/history.ts'
import type { EventStream } from '../events/stream.ts'
import type { Variables } from './environment.ts'

/** The list of releases looks at the files of each at most this often. A rollback always looks. */
const LOOK_AGAIN_MS = 2000

export type Releases = Awaited<ReturnType<typeof openReleases>>
type Cluster = { releasesInUse: () => string[], addresses?: () => string[],
  snapshot: () => { release: { id: string } } }

/**
 * Makes releases of the code on the disk, keeps the last ones, and knows how their workers are started. It keeps the
 * values of variables in memory alone.
 * @throws {DeckError} invalid-config, secrets-failed
 */
export async function openReleases (
  { config, before = null, last = null, variables, canWait = false, history, lastNumber = 0, cluster = () => null,
    usedByRuns = () => [], events, reload = async () => config, dataDir, drift = createDrift(),
    mask = createSecretMask(), inherited = process.env, order = null, source = () => ({ order, inherited }),
    onError = () => {}, now = Date.now }: {
      config: Config,
      history: Pick<History, 'releases' | 'lastReleaseNumber'>,
      /** the highest n of `r<n>` that the master before knows of */
      lastNumber?: number,
      /** runs the releases; null: it has not been made yet */
      cluster?: () => Cluster | null,
      /** the ids of the releases that jobs and commands run in */
      usedByRuns?: () => readonly string[],
      events: Pick<EventStream, 'publish'>,
      /** the release that the master goes on with; null: it begins with one of what is configured */
      before?: Release | null,
      /** the release that ran, and can run again */
      last?: Release | null,
      /** the variables of `before`, in place of what the configuration says now; one that is null is not set */
      variables?: Record<string, string | null>,
      /** for its secrets, as workers of the master before serve meanwhile */
      canWait?: boolean,
      /** reads the configuration anew, for the app in that folder */
      reload?: (launchIn?: string) => Promise<WorkerConfig>,
      dataDir: { folder: string, releaseFolder: string, releaseKey: () => string },
      /** knows which files the workers have loaded */
      drift?: Pick<Drift, 'knows' | 'of'>,
      /** is to hide all secrets that are read */
      mask?: Pick<SecretMask, 'add'>,
      /** the order that the master begins with, and the variables of the shell that it is from */
      order?: LaunchSource['order'],
      inherited?: LaunchSource['inherited'],
      /** the newest order, for a deploy */
      source?: () => LaunchSource,
      /** for errors that harm no deploy */
      onError?: (error: unknown) => void,
      /** wall clock, ms */
      now?: () => number
    }
) {
  const folders = createReleaseFolders({ dataFolder: dataDir.folder, releaseFolder: dataDir.releaseFolder, onError })
  const key = dataDir.releaseKey()
  const catalogue = createCatalogue({ history, lastNumber, onError, now })
  const maker = createMaker({ config, key, catalogue, folders, drift, inherited, current: currentRelease, now })
  const modules = createModuleCache({ releaseFolder: dataDir.releaseFolder, onError })
  const commits = createCommitFinder({ dataFolder: dataDir.folder, catalogue, readConfig, readSpec: readWith,
    inherited })
  const git = createGitReleases({ catalogue, commits, folders, modules, maker, readConfig, readSpec: readWith, onMade,
    inherited })
  const inPlace = createInPlace({ catalogue, drift })
  const manifests = createManifests({ dataDir, catalogue, onError })
  const preview = {
    ...createPreviews({ catalogue, maker, manifests, dataFolder: dataDir.folder, inherited, readSpec, latest: () =>
      latest, current: currentRelease, checkReturn, checkThere, caveatOf }),
    ofCommit: createCommitPreview({ catalogue, commits, folders, modules, maker, releaseFolder: dataDir.releaseFolder,
      inherited, latest: () => latest, current: currentRelease })
  }
  /** How the files of each release have changed, as the list has last seen it, and when, wall time. */
  const looks: Map<string, { at: number, change: import('../lifecycle/state.ts').Drift | null }> = new Map()
  /** Why the secrets are not known yet. */
  let missing: DeckError | null = null
  const ofCommit = before ?? await lastOfCommit()
  const cwd = ofCommit?.cwd ?? config.cwd
  let latest = await readFirst()
  /** The release that this master has begun with. */
  let first: Release | null = null
  /** The id of the release that a caller got last: its rollout may be about to begin. */
  let givenOut = ''
  /**
   * The release that this master has made at its start: its files are listed afterwards, as no start is to wait for
   * that.
   */
  let unlisted: Release | null = null
  /** Releases are made one after the other. */
  let turn: Promise<unknown> = Promise.resolve()

  return {
    readKept: catalogue.readKept,
    close: manifests.close,
    save: catalogue.save,
    settle: catalogue.settle,
    markRolledBack: catalogue.markRolledBack,

    /** The newest configuration that could be read. */
    configured: () => latest.config as Config,

    /** The hooks of the newest configuration that could be read. */
    hooks: () => latest.config.hooks,

    /** The jobs of the newest configuration that could be read. */
    jobs: () => latest.config.jobs,

    /** @returns with its arguments, which are never shown */
    find: (id: string): Release | undefined => catalogue.find(id)?.release,

    /** The highest n of `r<n>` given out. */
    lastNumber: catalogue.lastNumber,

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
      first = ofCommit
      if (first) return { release: adoptRelease(first), isNew: false }
      const made = await inTurn(() => makeRelease(latest, { actor: 'system', note: null }))
      if (last && last.id !== made.release.id && !made.isNew && isNewest(made.release)) {
        first = last
        return { release: adoptRelease(last), isNew: false }
      }
      unlisted = made.release
      return made
    },

    /**
     * How a release is started, with its variables but for those that are secret. Returns null: they are not known yet.
     */
    launchOf (id: string): { spec: LaunchSpec, variables: Record<string, string | null> } | null {
      const spec = catalogue.find(id)?.spec ?? (missing ? null : latest)
      return spec &&
        { spec, variables: Object.fromEntries(Object.entries(spec.values).filter(([name]) =>
          !(name in spec.secrets)
        ).map(([name, value]) => [name, value ?? null])) }
    },

    tellCreated,

    /** Why no worker can be started: the secrets could not be read yet. */
    secretsProblem: () => missing?.message ?? null,

    /**
     * Reads the secrets that are missing. Returns the release that this master has begun with, which can run now; null:
     * they could not be read.
     */
    async readMissing (): Promise<Release | null> {
      try {
        latest = await readWith(await reloadConfig(reload), cwd, source())
        missing = null
        return first && adoptRelease(first)
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        missing = error
        return null
      }
    },

    /**
     * Makes a release of the code that is on the disk now, or finds the one that it still is.
     * @param wanted `path`: a folder below
     * `releases.root`; `mode`: in place of `releases.mode`; `spec`: as `check` has read it
     * @throws {DeckError} entry-not-found, path-refused, copy-failed, unshared-files, invalid-config; then nothing has
     * changed
     */
    prepare: prepareRelease,

    /** Says how a release of a commit is made. */
    planGit: git.plan,

    /** The branches and tags that can be deployed. */
    refs: (() => commits.refs()) as typeof commits.refs,

    /**
     * The release for a rollout: a known one, or one of the code on the disk.
     * @throws {DeckError} as prepare and load
     */
    forRollout: ({ release, ...source }: { release?: string, path?: string, mode?: 'folder', spec?: LaunchSpec },
      by: { note: string | null, actor: string }): Promise<Release> =>
      release === undefined ? prepareRelease({ ...source, ...by }) : loadRelease(release),

    /**
     * Refuses at once a deploy that would fail.
     * @returns for `prepare`, so that the configuration is read once
     * @throws {DeckError} entry-not-found, path-refused, invalid-config, secrets-failed
     */
    check: async ({ path }: { path?: string }): Promise<LaunchSpec> => await readSpec(path),

    /** What a deploy or a rollback would do; it changes nothing. */
    preview,

    /**
     * The configuration as it is read now, and as the last deploy has read it.
     * @throws {DeckError} invalid-config
     */
    configurations: async () => ({ now: await readConfig(), deployed: latest.config }),

    /** What the releases of the newest configuration that could be read have in common, and what none has. */
    parts () {
      const { shared, exclude } = latest.config.releases
      return { shared, exclude }
    },

    /**
     * What the app has written into the folder of the release that runs, and the next release would not find. Returns
     * null: it has no folder of its own; `home`: the app's folder.
     * @throws {DeckError} copy-failed
     */
    async written (): Promise<{ release: string, home: string, copy: string, files: string[], bytes: number } | null> {
      const release = catalogue.find(currentRelease() ?? '')?.release
      if (release?.mode !== 'folder') return null
      return { release: release.id, home: await ownFolder(latest.config),
        ...await folders.written(release, latest.config.releases) }
    },

    /** Which of these releases a new worker would not find as they were. */
    changedInPlace: inPlace.look,

    /**
     * Refuses a rollback that would start other code than the release has served with.
     * @throws {DeckError} not-found, drifted
     */
    checkReturn,

    /** Returns the one to roll back to @throws {DeckError} not-found */
    before (id: string): string {
      const last = catalogue.lastGood(id)
      if (!last) {
        throw new DeckError('not-found',
          `No release other than ${id} was deployed successfully and kept; to use one that the guard rolled back, name it`)
      }
      return last.release.id
    },

    load: loadRelease,

    /** @returns as in list @throws {DeckError} not-found */
    get: (id: string): ReturnType<typeof withChange> =>
      withChange(catalogue.show(catalogue.mustFind(id), clusterUse())),

    /**
     * Tells how one release differs from another. Of variables it tells only the names.
     * @returns `commits`: null: unknown
     * @throws {DeckError} not-found
     */
    async compare (from: string,
      to: string
    ): Promise<{ changed: NonNullable<Release['changed']>, commits: Awaited<ReturnType<typeof commitsBetween>> }> {
      const [before, after] = [catalogue.mustFind(from), catalogue.mustFind(to)]
      return { changed: changesBetween(before, after),
        commits: await commitsBetween(before.release, after.release, inherited) }
    },

    /**
     * Newest first, without arguments, which are never shown. `query`: `limit` 1…100.
     * @throws {DeckError} invalid-query
     */
    list (
      query: { limit?: number, cursor?: string | null } = {}
    ): { items: ReturnType<typeof withChange>[], next: string | null } {
      const { items, next } = catalogue.page(query, clusterUse())
      return { items: items.map(withChange), next }
    },

    /**
     * Returns the variables of its workers, which override those that they inherit.
     * @throws {DeckError} why they are not known yet
     */
    environment: (id: string): Variables => specOf(id).values,

    /** Returns the variables that its workers inherit @throws {DeckError} why the others are not known yet */
    inherited: (id: string): LaunchSource['inherited'] => specOf(id).inherited,

    /** Returns those of its variables that are secret @throws {DeckError} why they are not known yet */
    secrets: (id: string): Readonly<Record<string, string>> => specOf(id).secrets,

    /** `id`: the one that a master has begun with, which may never have served before another one was deployed */
    settleFirst (id: string) {
      // If it served under the master before, it was deployed then, not now.
      const item = catalogue.find(id)
      if (item?.outcome !== 'succeeded' || item.deployedMs === null) {
        catalogue.settle({ release: id, outcome: currentRelease() === id ? 'succeeded' : 'failed', rollout: null })
      }
      if (unlisted) listFiles(unlisted)
      unlisted = null
      pruneReleases()
    },

    prune: pruneReleases,

    /**
     * Removes unfinished copies of an earlier master, and folders of no known release. It must not be called before the
     * cluster has its workers, as their releases are in use.
     * @returns never rejects
     */
    async clean (): Promise<void> {
      const needed = usedReleases().add(givenOut)
      await Promise.all(
        folders.names().filter((name) => !needed.has(name) && !catalogue.find(name)).map(folders.remove)
      )
      await git.prune()
    }
  }

  function prepareRelease (
    { path, mode, spec, actor, note = null }: { path?: string, mode?: 'folder', spec?: LaunchSpec, actor: string,
      note?: string | null }
  ) {
    return inTurn(async () => {
      const { release, isNew } = await makeRelease(spec ?? await readSpec(path), { path, mode, actor, note })
      listFiles(release)
      if (isNew) tellCreated(release)
      return release
    })
  }

  /** @throws {DeckError} invalid-config, secrets-failed */
  async function readFirst (): Promise<LaunchSpec> {
    try {
      return await readWith(config, cwd, { order, inherited }, variables)
    } catch (error) {
      if (!canWait || !(error instanceof DeckError) || error.code !== 'secrets-failed') throw error
      missing = error
      return { ...await readWith({ ...config, secrets: undefined }, cwd, { order, inherited }, variables), config }
    }
  }

  /** @throws {DeckError} why its variables are not known yet */
  function specOf (id: string): LaunchSpec {
    return catalogue.find(id)?.spec ?? latestSpec()
  }

  /** @throws {DeckError} why its variables are not known yet */
  function latestSpec () {
    if (missing) throw missing
    return latest
  }

  /** @throws {DeckError} path-refused, invalid-config, entry-not-found, secrets-failed */
  async function readSpec (path?: string): Promise<LaunchSpec> {
    const folder = path === undefined ? undefined : await folderBelow(path, config.releases.root)
    const next = await readConfig(folder)
    // The command belongs to the code that is deployed, as hooks do.
    const place = await maker.locate({ config: next }, path)
    return await readWith(next, place.cwd)
  }

  /** @returns for the app in that folder @throws {DeckError} invalid-config */
  async function readConfig (folder?: string): Promise<LaunchSpec['config']> {
    const next = await reloadConfig(() => reload(folder))
    checkKind(next, next.appNode)
    return next
  }

  /**
   * Node shares its sockets by node:cluster, and other programs share theirs by the kernel: nobody can do both at once.
   * @throws {DeckError} invalid-config
   */
  function checkKind ({ runtime = 'node', entry }: Pick<Release, 'runtime' | 'entry'>, node: Release['node']) {
    const { runtime: own = 'node' } = first ?? config
    if (runtime === own || !cluster()?.addresses?.().length) return
    const kinds = { node: 'by Node 20.19, 22.12 or later',
      other: node?.file === entry ? `by Node ${node.version}` : 'as a program of another language' }
    throw new DeckError('invalid-config',
      `node: expected an app that is still run ${
        own === 'node' ? kinds.node : 'by an older Node, or as a program of another language'
      }, as its workers share their sockets in another way, received one that is run ${
        kinds[runtime]
      }. Stop the app, and start it again`)
  }

  /** `folder`: in which a command runs that has the secrets; `known`: in place of what the files say now */
  async function readWith (from: LaunchSpec['config'], folder: string, by = source(), known?: typeof variables) {
    const spec = await readLaunchSpec(from, by, { key, cwd: folder, known })
    mask.add(spec.secrets)
    return spec
  }

  /** `release`: has just been made of what is in its folder */
  function listFiles (release: Release) {
    manifests.note(release, partsLeftOut(latest.config))
  }

  function onMade (release: Release, spec: LaunchSpec) {
    latest = spec
    givenOut = release.id
    tellCreated(release)
  }

  function isNewest ({ id }: Release) {
    return catalogue.newestFirst()[0]?.release.id === id
  }

  /** @returns what ran last, where it was made of a commit and still has what is configured */
  async function lastOfCommit (): Promise<Release | null> {
    const release = last
    if (release?.build === undefined) return null
    const top = await realpath(dataDir.releaseFolder).catch(() => null)
    const found = top === null
      ? null
      : await placeIn(release.path, { top, entry: config.entry, cwd: config.cwd, runtime: config.runtime }).catch(() =>
        null
      )
    return found && 'entry' in found && found.entry === release.entry ? release : null
  }

  function inTurn<T> (work: () => Promise<T>): Promise<T> {
    const result = turn.then(work)
    turn = result.catch(() => {})
    return result
  }

  async function makeRelease (spec: LaunchSpec,
    wanted: { path?: string, mode?: 'folder', actor: string, note: string | null })
  {
    const made = await maker.make(spec, wanted)
    latest = spec
    givenOut = made.release.id
    return made
  }

  /**
   * Takes over the release that ran under another master, as its checkpoint describes it. No checkpoint has the values
   * of variables, so these are read anew.
   */
  function adoptRelease (release: Release): Release {
    // Where an old Node runs the app, its file is among the arguments.
    const { args, execArgv } =
      (release.runtime !== config.runtime || release.entry === release.node?.file
        ? catalogue.find(release.id)?.release
        : undefined) ?? config
    const { environmentChanged: _, ...before } = { args, execArgv, runtime: config.runtime, ...release,
      ...nodeOf(release) }
    const isOther = missing === null && before.environment !== undefined && before.environment.digest !== latest.digest
    const adopted = isOther ? { ...before, environmentChanged: true } : before
    const number = releaseNumber(release.id)
    catalogue.countFrom(number)
    // If its marks are known, they are those of its deploy.
    const fresh: Omit<Item, 'release' | 'spec'> = { outcome: 'succeeded', rollout: null, deployedMs: null,
      servedMs: now(), marks: latest.marks, stamp: null }
    catalogue.put(number, { ...fresh, ...catalogue.find(release.id), release: adopted, spec: missing ? null : latest })
    return adopted
  }

  /** The Node that it had, if it is still there: its version may be another one by now. */
  function nodeOf ({ node, runtime = 'node' }: Release): Pick<Release, 'node'> {
    const { appNode } = config
    if (!appNode || (runtime === 'node' ? isOldNode(appNode.version) : !node)) return {}
    return !node || node.file === appNode.file || !isProgram(node.file)
      ? { node: { ...appNode, ...(node?.file === appNode.file && { by: node.by }) } }
      : {}
  }

  /**
   * Finds a release to roll back to, with its arguments and variables. A release that this master has not started
   * itself gets the variables that were read last, since a rollback must work whatever the configuration looks like by
   * then.
   * @throws {DeckError} not-found, release-gone, or why its variables are not known yet
   */
  async function loadRelease (id: string): Promise<Release> {
    const item = catalogue.mustFind(id)
    checkKind(item.release, item.release.node)
    await checkThere(item.release)
    if (item.spec === null) {
      item.spec = latestSpec()
      if (item.release.environment?.digest !== latest.digest)
        item.release = { ...item.release, environmentChanged: true }
    }
    givenOut = id
    return item.release
  }

  /** @throws {DeckError} release-gone */
  async function checkThere ({ id, entry, node }: Release) {
    for (const file of [entry, ...node ? [node.file] : []]) {
      await access(file).catch((error) => {
        throw new DeckError('release-gone', `release ${id} cannot run: ${file} is gone`, { cause: error })
      })
    }
  }

  /** @throws {DeckError} not-found, drifted */
  function checkReturn (id: string) {
    const { release } = catalogue.mustFind(id)
    const change = inPlace.changeOf(id)
    if (change?.kind !== 'code') return
    const restore = release.git ? `check out ${formatCommit(release.git.commit)}` : 'put the files back'
    throw new DeckError('drifted',
      `${id} cannot come back: ${
        changeText(id, change)
      }. To run its code again, ${restore} and deploy. With releases.mode: folder every release keeps its files`, {
      details: { release: id, ...change }
    })
  }

  /**
   * Forgets the oldest releases, and removes their folders in the background.
   * @returns when they are gone; never rejects
   */
  async function pruneReleases (): Promise<void> {
    // The release to roll back to has to stay.
    const needed = usedReleases().add(givenOut).add(catalogue.lastGood(currentRelease() ?? '')?.release.id ?? '')
    const forgotten = catalogue.prune(config.releases.keep, (id) => needed.has(id))
    for (const { id } of forgotten) looks.delete(id)
    if (forgotten.length > 0) await manifests.prune()
    await Promise.all(forgotten.filter(({ mode }) => mode === 'folder').map(({ id }) => folders.remove(id)))
    if (forgotten.length > 0) await git.prune()
  }

  function withChange (shown: ReturnType<typeof catalogue.show>) {
    const change = recentChange(shown.id)
    return { ...shown,
      changedInPlace: change &&
        { ...change, message: change.kind === 'code' ? changeText(shown.id, change) : caveatText(shown.id, change) } }
  }

  /** Pages are drawn often, and a look at the files of ten releases can take 40 ms. */
  function recentChange (id: string) {
    const known = looks.get(id)
    if (known !== undefined && Math.abs(now() - known.at) < LOOK_AGAIN_MS) return known.change
    const change = inPlace.changeOf(id)
    looks.set(id, { at: now(), change })
    return change
  }

  /** @returns what a rollback to it would not bring back */
  function caveatOf (id: string): string | null {
    const change = inPlace.changeOf(id)
    return change && change.kind !== 'code' ? caveatText(id, change) : null
  }

  function clusterUse () {
    return { used: usedReleases(), current: currentRelease() }
  }

  /** @returns the ids of the releases that a worker, a slot or a run has */
  function usedReleases (): Set<string> {
    return new Set([...cluster()?.releasesInUse() ?? [], ...usedByRuns()])
  }

  /** @returns the id of the last release that was deployed successfully */
  function currentRelease (): string | null {
    return cluster()?.snapshot().release.id ?? null
  }

  function tellCreated (release: Release) {
    events.publish({ type: 'release.created', release: release.id, actor: release.createdBy ?? 'system',
      detail: shownRelease(release) })
  }
}

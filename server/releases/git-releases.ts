import { readFile, realpath } from 'node:fs/promises'
import path from 'node:path'
import { formatCommit } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { chooseNode, pathWithNode } from '../system/app-node.ts'
import { SHELL_VARIABLE, withoutOwnVariables } from '../system/own-variables.ts'
import { durationText } from '../lifecycle/duration.ts'
import { exportCommit, withoutGitVariables, type Exec } from './git-export.ts'
import { isBelow, mapPath, pinOptions, placeIn } from './resolve.ts'
import { workspaceFolder } from './workspace.ts'
import type { Release } from '../lifecycle/state.ts'
import type { LaunchSpec } from './launch-spec.ts'
import type { Build } from './build-commands.ts'
import type { Look, Where } from './commit-finder.ts'
import type { ReleaseParts, Stock } from './stock.ts'

/** as of jobs/run-steps.ts */
type StepTools = { exec: Exec, tell: (line: string) => void, check: () => void, pause: (ms: number) => Promise<void> }
/** How a commit becomes a release. `stamp`: as of the finder. */
type Plan =
  & Look
  & { build: Build | null, stamp: string }
/** `commit`: that it is; `isGuessAccepted`: what nobody has configured may be built as the lock file suggests */
type Wanted = { git: string, commit?: string, isGuessAccepted?: boolean, actor: string, note: string | null }

/** That of hooks.build, where nobody has configured it. */
const DEFAULT_TIMEOUT_MS = 900_000

/** Makes releases of commits: git exports one into a folder of its own, which is then built. */
export function createGitReleases (stock: Stock, { commits, maker, launches: { readConfig, readWith } }: ReleaseParts,
  onMade: (release: Release, spec: LaunchSpec) => void)
{
  const { catalogue, folders, modules, inherited } = stock
  /** Packages that a build is about to use must not go meanwhile. */
  let isBuilding = false

  return { plan, prune: pruneModules }

  /**
   * Refuses at once what would fail, and says how the rest is done: fetching, exporting and building may take minutes.
   * @throws {DeckError} not-found, build-unconfirmed, unshared-files, invalid-config
   */
  async function plan (
    wanted: Wanted
  ): Promise<
    { name: string, git: string, option: string, timeoutMs: number, make: (tools: StepTools) => Promise<Release> }
  > {
    const where = await commits.where()
    const { spec, home } = where
    const known = await commits.addressToFetch(wanted.commit ?? wanted.git, where) === null
      ? await planOf(wanted, where)
      : null
    await folders.checkShared({ shared: spec.config.releases.shared, home })
    await maker.checkLeftBehind(spec, home)
    return { name: `deploy --git ${wanted.git}`, git: wanted.git, ...limitOf(spec), async make (tools) {
      if (!known) await commits.fetch(where, tools)
      const seen = known ?? await planOf(wanted, where)
      const { branch, author, subject } = seen.found
      tools.tell(
        `commit ${formatCommit(seen.found.commit)}${branch === null ? '' : ` of ${branch}`}: ${subject} (${author})`
      )
      const same = await commits.findSame(seen.stamp)
      if (!same) return await makeRelease(seen, wanted, where, tools)
      const { item, spec: last } = same
      item.spec = last
      tools.tell(`${item.release.id} is of this commit already: nothing is built`)
      return item.release
    } }
  }

  /** @throws {DeckError} not-found, build-unconfirmed */
  async function planOf ({ git, commit = git, isGuessAccepted = false }: Wanted, where: Where): Promise<Plan> {
    const seen = await commits.find(commit, where)
    const build = await commits.buildOf(seen, where)
    commits.checkGuess(build, isGuessAccepted)
    return { ...seen, build, stamp: commits.stampOf(seen, build, where) }
  }

  /** @returns which is whole */
  async function makeRelease ({ gitDir, prefix, found, build, stamp }: Plan, { actor, note }: Wanted,
    { spec, home }: Where, tools: StepTools): Promise<Release>
  {
    const { exec, check } = tools
    const number = catalogue.takeNumber()
    const id = `r${number}`
    isBuilding = true
    try {
      const { top, index } = await folders.begin(id)
      const names = await exportCommit({ gitDir, found, to: top, index, env: inherited, exec })
      const folder = await realpath(path.join(top, prefix))
      if (folder !== top && !isBelow(folder, top))
        throw new DeckError('entry-not-found', `the commit has a link in the place of ${prefix}, which leads out of it`)
      await folders.share({ top, folder }, { shared: spec.config.releases.shared, home })
      const cached = await buildRelease(build, { id, top, folder, names, spec }, tools)
      // Refuses packages that are outside of it.
      await workspaceFolder(folder)
      const config = await readConfig(folder)
      const place = await placeOf({ top, folder, home, prefix }, config)
      const last = await readWith(config, place.cwd)
      const about = await maker.describe(last, place)
      check()
      const release = maker.add(last, { mode: 'folder', entry: place.entry, path: folder, cwd: place.cwd,
        ...(place.calledAs !== undefined && { calledAs: place.calledAs }), ...about,
        execArgv: (await pinOptions(last.config.execArgv)).map((word) =>
          mapPath(word, inRelease({ top, home, prefix }))
        ), source: gitDir, git: { ...found, isDirty: false }, lockFile: build?.lock?.digest ?? about.lockFile,
        build: build?.text ?? null }, { number, stamp, actor, note })
      if (cached) await modules.keep(cached, id)
      await folders.finish(id)
      onMade(release, last)
      return release
    } catch (error) {
      await Promise.all([folders.remove(id), folders.finish(id), modules.forget(id)])
      throw error
    } finally {
      isBuilding = false
      await pruneModules()
    }
  }

  /** Removes installed packages that no release has any more. */
  async function pruneModules () {
    if (!isBuilding) await modules.prune(catalogue.newestFirst().map(({ release }) => release.lockFile))
  }

  /** @returns the name of the packages that are to be kept */
  async function buildRelease (build: Build | null,
    { id, top, folder, names, spec }: { id: string, top: string, folder: string, names: string[], spec: LaunchSpec },
    { exec, tell, check }: StepTools): Promise<string | null>
  {
    if (!build) return null
    const node = await chooseNode({ wanted: spec.config.node, folder, env: spec.inherited })
    // Addons are made for the Node of the workers.
    const PATH = pathWithNode(node, spec.values.PATH ?? spec.inherited.PATH)
    const env = { ...withoutGitVariables(withoutOwnVariables({ ...spec.inherited, ...spec.values })), PATH,
      [SHELL_VARIABLE]: spec.inherited[SHELL_VARIABLE], CLUSTERDECK_HOOK: 'build', CLUSTERDECK_RELEASE: id }
    const { install, command, lock } = build
    const name = await modules.nameOf(build, { names, nodeVersion: node.version,
      read: (file) => readFile(path.join(top, file), 'utf8').catch(() => null) })
    const startedAt = performance.now()
    const filled = name === null ? null : await modules.fill(name, top)
    let digest = filled?.digest
    if (filled)
      tell(
        `${filled.files} files of packages are those of the last ${lock?.name}, linked in ${
          durationText(performance.now() - startedAt)
        }`
      )
    else if (install) {
      // Packages that only a build needs are left out where it is "production".
      await run(install.command, path.join(top, install.folder), { ...env, NODE_ENV: undefined })
      if (name !== null)
        digest = (await modules.take(name, { id, top, files: names, except: spec.config.releases.shared.map((shared) =>
          path.join(folder, shared).replace(/\/$/, '')
        ) })).digest
    }
    check()
    if (command) await run(command, folder, env)
    if (name === null || digest === undefined) return null
    if (command && !await modules.isUntouched(name, { id, digest })) {
      tell('the build has written into packages, so they are installed anew the next time')
      await Promise.all([modules.forget(id), modules.remove(name)])
      return null
    }
    return name

    async function run (words: readonly string[], cwd: string, variables: Record<string, string | undefined>) {
      tell(`$ ${words.join(' ')}`)
      await exec({ name: words.join(' '), command: words, cwd, env: variables })
    }
  }

  /** @throws {DeckError} entry-not-found */
  async function placeOf ({ top, folder, home, prefix }: { top: string, folder: string, home: string, prefix: string },
    { entry, cwd, runtime }: LaunchSpec['config'])
  {
    // Its user is looked for from the working folder. If that is in the release, so is a program that is named by its
    // path, as in node_modules/.bin.
    const isInside = cwd === top || isBelow(cwd, top)
    const found = await placeIn(folder, { top, entry: isInside ? inRelease({ top, home, prefix })(entry) : entry, cwd,
      runtime })
    if ('outside' in found)
      throw new DeckError('entry-not-found',
        `entry: expected a file of the commit, received ${found.outside}, which leads out of it`)
    if ('missing' in found)
      throw new DeckError('entry-not-found',
        `entry: expected a file of the commit or of its build, received ${found.missing}, which is not there`)
    const same = await realpath(inRelease({ top, home, prefix })(found.cwd)).catch(() => null)
    return { ...found, cwd: same !== null && (same === top || isBelow(same, top)) ? same : found.cwd }
  }
}

/** @returns how long all of it may take */
export function limitOf ({ config: { hooks } }: LaunchSpec): { option: string, timeoutMs: number } {
  return { option: 'hooks.build.timeoutMs', timeoutMs: hooks.build?.timeoutMs ?? DEFAULT_TIMEOUT_MS }
}

/** What is in the working tree of the app, also above its package as in a workspace, is in the release too. */
export function inRelease (
  { top, home, prefix }: { top: string, home: string, prefix: string }
): (file: string) => string {
  const tree = prefix === '' ? home : path.join(home, path.relative(`/${prefix}`, '/'))
  return (file) => {
    if (file === top || isBelow(file, top)) return file
    return file === tree || isBelow(file, tree) ? path.join(top, path.relative(tree, file)) : file
  }
}

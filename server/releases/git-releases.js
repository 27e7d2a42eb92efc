import { readFile, realpath } from 'node:fs/promises'
import path from 'node:path'
import { formatCommit } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { SHELL_VARIABLE, withoutOwnVariables } from '../system/own-variables.js'
import { durationText } from '../lifecycle/duration.js'
import { exportCommit, withoutGitVariables } from './git-export.js'
import { isBelow, mapPath, pinOptions, placeIn } from './resolve.js'
import { workspaceFolder } from './workspace.js'

/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('./launch-spec.js').LaunchSpec} LaunchSpec */
/** @typedef {import('./build-commands.js').Build} Build */
/** @typedef {{ exec: import('./git-export.js').Exec, tell: (line: string) => void, check: () => void, pause: (ms: number) => Promise<void> }} StepTools  as of jobs/steps-run.js */
/** How a commit becomes a release. `stamp`: as of the finder. @typedef {import('./commit-finder.js').Look & { build: Build | null, stamp: string }} Plan */
/** @typedef {import('./commit-finder.js').Where} Where */
/** @typedef {{ git: string, isGuessAccepted?: boolean, actor: string, note: string | null }} Wanted `isGuessAccepted`: what nobody has configured may be built as the lock file suggests */

/** That of hooks.build, where nobody has configured it. */
const DEFAULT_TIMEOUT_MS = 900_000

/**
 * Makes releases of commits: git exports one into a folder of its own, which is then built.
 * @param {object} parts
 * @param {ReturnType<typeof import('./catalogue.js').createCatalogue>} parts.catalogue
 * @param {ReturnType<typeof import('./commit-finder.js').createCommitFinder>} parts.commits
 * @param {ReturnType<typeof import('./release-folders.js').createReleaseFolders>} parts.folders
 * @param {ReturnType<typeof import('./module-cache.js').createModuleCache>} parts.modules
 * @param {Pick<ReturnType<typeof import('./maker.js').createMaker>, 'add' | 'checkLeftBehind' | 'describe'>} parts.maker
 * @param {(folder?: string) => Promise<LaunchSpec['config']>} parts.readConfig  for the app in that folder
 * @param {(config: LaunchSpec['config'], cwd: string) => Promise<LaunchSpec>} parts.readSpec  `cwd`: of the command that has the secrets
 * @param {(release: Release, spec: LaunchSpec) => void} parts.onMade
 * @param {Record<string, string | undefined>} parts.inherited  of the shell that the app is from
 */
export function createGitReleases ({ catalogue, commits, folders, modules, maker, readConfig, readSpec, onMade, inherited }) {
  /** Packages that a build is about to use must not go meanwhile. */
  let isBuilding = false

  return { plan, prune: pruneModules }

  /**
   * Refuses at once what would fail, and says how the rest is done: fetching, exporting and building may take minutes.
   * @param {Wanted} wanted
   * @returns {Promise<{ name: string, git: string, option: string, timeoutMs: number, make: (tools: StepTools) => Promise<Release> }>}
   * @throws {DeckError} not-found, build-unconfirmed, unshared-files, invalid-config
   */
  async function plan (wanted) {
    const where = await commits.where()
    const { spec, home } = where
    const known = await commits.addressToFetch(wanted.git, where) === null ? await planOf(wanted, where) : null
    await folders.checkShared({ shared: spec.config.releases.shared, home })
    await maker.checkLeftBehind(spec, home)
    return {
      name: `deploy --git ${wanted.git}`,
      git: wanted.git,
      ...limitOf(spec),
      async make (tools) {
        if (!known) await commits.fetch(where, tools)
        const seen = known ?? await planOf(wanted, where)
        const { branch, author, subject } = seen.found
        tools.tell(`commit ${formatCommit(seen.found.commit)}${branch === null ? '' : ` of ${branch}`}: ${subject} (${author})`)
        const same = await commits.findSame(seen.stamp)
        if (!same) return await makeRelease(seen, wanted, where, tools)
        const { item, spec: last } = same
        item.spec = last
        tools.tell(`${item.release.id} is of this commit already: nothing is built`)
        return item.release
      }
    }
  }

  /** @param {Wanted} wanted @param {Where} where @returns {Promise<Plan>} @throws {DeckError} not-found, build-unconfirmed */
  async function planOf ({ git, isGuessAccepted = false }, where) {
    const seen = await commits.find(git, where)
    const build = await commits.buildOf(seen, where)
    commits.checkGuess(build, isGuessAccepted)
    return { ...seen, build, stamp: commits.stampOf(seen, build, where) }
  }

  /**
   * @param {Plan} seen @param {Wanted} wanted @param {Where} where @param {StepTools} tools
   * @returns {Promise<Release>} which is whole
   */
  async function makeRelease ({ gitDir, prefix, found, build, stamp }, { actor, note }, { spec, home }, tools) {
    const { exec, check } = tools
    const number = catalogue.takeNumber()
    const id = `r${number}`
    isBuilding = true
    try {
      const { top, index } = await folders.begin(id)
      const names = await exportCommit({ gitDir, found, to: top, index, env: inherited, exec })
      const folder = await realpath(path.join(top, prefix))
      if (folder !== top && !isBelow(folder, top)) throw new DeckError('entry-not-found', `the commit has a link in the place of ${prefix}, which leads out of it`)
      await folders.share({ top, folder }, { shared: spec.config.releases.shared, home })
      const cached = await buildRelease(build, { id, top, folder, names, spec }, tools)
      // Refuses packages that are outside of it.
      await workspaceFolder(folder)
      const config = await readConfig(folder)
      const place = await placeOf({ top, folder, home, prefix }, config)
      const last = await readSpec(config, place.cwd)
      const about = await maker.describe(last, place)
      check()
      const release = maker.add(last, {
        mode: 'folder',
        entry: place.entry,
        path: folder,
        cwd: place.cwd,
        ...(place.calledAs !== undefined && { calledAs: place.calledAs }),
        ...about,
        execArgv: (await pinOptions(last.config.execArgv)).map((word) => mapPath(word, inRelease({ top, home, prefix }))),
        source: gitDir,
        git: { ...found, isDirty: false },
        lockFile: build?.lock?.digest ?? about.lockFile,
        build: build?.text ?? null
      }, { number, stamp, actor, note })
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

  /**
   * @param {Build | null} build @param {{ id: string, top: string, folder: string, names: string[], spec: LaunchSpec }} release @param {StepTools} tools
   * @returns {Promise<string | null>} the name of the packages that are to be kept
   */
  async function buildRelease (build, { id, top, folder, names, spec }, { exec, tell, check }) {
    if (!build) return null
    const env = { ...withoutGitVariables(withoutOwnVariables({ ...inherited, ...spec.values })), ...withOwnNode(spec.values.PATH ?? inherited.PATH), [SHELL_VARIABLE]: inherited[SHELL_VARIABLE], CLUSTERDECK_HOOK: 'build', CLUSTERDECK_RELEASE: id }
    const { install, command, lock } = build
    const name = await modules.nameOf(build, { names, read: (file) => readFile(path.join(top, file), 'utf8').catch(() => null) })
    const startedAt = performance.now()
    const filled = name === null ? null : await modules.fill(name, top)
    let digest = filled?.digest
    if (filled) tell(`${filled.files} files of packages are those of the last ${lock?.name}, linked in ${durationText(performance.now() - startedAt)}`)
    else if (install) {
      // Packages that only a build needs are left out where it is "production".
      await run(install.command, path.join(top, install.folder), { ...env, NODE_ENV: undefined })
      if (name !== null) digest = (await modules.take(name, { id, top, files: names, except: spec.config.releases.shared.map((shared) => path.join(folder, shared).replace(/\/$/, '')) })).digest
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

    /** @param {readonly string[]} words @param {string} cwd @param {Record<string, string | undefined>} variables */
    async function run (words, cwd, variables) {
      tell(`$ ${words.join(' ')}`)
      await exec({ name: words.join(' '), command: words, cwd, env: variables })
    }
  }

  /** @param {{ top: string, folder: string, home: string, prefix: string }} release @param {LaunchSpec['config']} config @throws {DeckError} entry-not-found */
  async function placeOf ({ top, folder, home, prefix }, { entry, cwd, runtime }) {
    // Its user is looked for from the working folder. If that is in the release, so is a program that is named by its path, as in node_modules/.bin.
    const isInside = cwd === top || isBelow(cwd, top)
    const found = await placeIn(folder, { top, entry: isInside ? inRelease({ top, home, prefix })(entry) : entry, cwd, runtime })
    if ('outside' in found) throw new DeckError('entry-not-found', `entry: expected a file of the commit, received ${found.outside}, which leads out of it`)
    if ('missing' in found) throw new DeckError('entry-not-found', `entry: expected a file of the commit or of its build, received ${found.missing}, which is not there`)
    const same = await realpath(inRelease({ top, home, prefix })(found.cwd)).catch(() => null)
    return { ...found, cwd: same !== null && (same === top || isBelow(same, top)) ? same : found.cwd }
  }
}

/** @param {LaunchSpec} spec @returns {{ option: string, timeoutMs: number }} how long all of it may take */
export function limitOf ({ config: { hooks } }) {
  return { option: 'hooks.build.timeoutMs', timeoutMs: hooks.build?.timeoutMs ?? DEFAULT_TIMEOUT_MS }
}

/**
 * What is in the working tree of the app, also above its package as in a workspace, is in the release too.
 * @param {{ top: string, home: string, prefix: string }} release @returns {(file: string) => string}
 */
export function inRelease ({ top, home, prefix }) {
  const tree = prefix === '' ? home : path.join(home, path.relative(`/${prefix}`, '/'))
  return (file) => {
    if (file === top || isBelow(file, top)) return file
    return file === tree || isBelow(file, tree) ? path.join(top, path.relative(tree, file)) : file
  }
}

/** The Node of the workers comes first: addons are made for it. @param {string} [path_] */
function withOwnNode (path_) {
  const own = path.dirname(process.execPath)
  return { PATH: path_ ? `${own}${path.delimiter}${path_}` : own }
}

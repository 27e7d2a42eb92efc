import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, realpath } from 'node:fs/promises'
import path from 'node:path'
import { DeckError } from '../errors.js'
import { withoutOwnVariables } from '../system/own-variables.js'
import { durationText } from '../lifecycle/duration.js'
import { buildOf, hasInstallScript } from './build-commands.js'
import { findCommit, findRepository, readCommit } from './git.js'
import { exportCommit, fetchAll, withoutGitVariables } from './git-export.js'
import { isBelow, mapPath, ownFolder, pinOptions, placeIn } from './resolve.js'
import { workspaceFolder } from './workspace.js'

/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('./launch-spec.js').LaunchSpec} LaunchSpec */
/** @typedef {import('./build-commands.js').Build} Build */
/** @typedef {{ exec: import('./git-export.js').Exec, tell: (line: string) => void, check: () => void, pause: (ms: number) => Promise<void> }} Teller  as of jobs/story-run.js */
/** What was found: where a commit is, and how it is built. `prefix`: the package folder in it, from the top. @typedef {{ gitDir: string, prefix: string, found: import('./git.js').Found, build: Build | null, stamp: string }} Look */
/** `home`: the app's package folder; `own`: its repository. @typedef {{ spec: LaunchSpec, home: string, own: { gitDir: string, prefix: string } | null, sources: Source[] }} Where */
/** Where commits are looked for; `url`: of which it has the commits. @typedef {{ gitDir: string, url: string | null }} Source */
/** @typedef {{ git: string, isGuessAccepted?: boolean, actor: string, note: string | null }} Wanted `isGuessAccepted`: what nobody has configured may be built as the lock file suggests */

/** In the data folder: what was fetched from `releases.git`, and what `setup-git-push` has made for pushes. */
const FETCHED = 'fetched.git'
const PUSHED = 'push.git'
const DEFAULT_TIMEOUT_MS = 900_000
const COMMIT = /^[0-9a-f]{40,64}$/
const SHOWN_DIGITS = 9

/**
 * Makes releases of commits: git exports one into a folder of its own, which is then built.
 * @param {object} parts
 * @param {string} parts.dataFolder
 * @param {ReturnType<typeof import('./catalogue.js').createCatalogue>} parts.catalogue
 * @param {ReturnType<typeof import('./release-folders.js').createReleaseFolders>} parts.folders
 * @param {ReturnType<typeof import('./module-cache.js').createModuleCache>} parts.modules
 * @param {Pick<ReturnType<typeof import('./maker.js').createMaker>, 'add' | 'checkWritten' | 'describe'>} parts.maker
 * @param {(folder?: string) => Promise<LaunchSpec['config']>} parts.readConfig  for the app in that folder
 * @param {(config: LaunchSpec['config'], cwd: string) => Promise<LaunchSpec>} parts.readSpec  `cwd`: of the command that has the secrets
 * @param {(release: Release, spec: LaunchSpec) => void} parts.onMade
 * @param {Record<string, string | undefined>} parts.inherited  of the shell that the app is from
 */
export function createGitReleases ({ dataFolder, catalogue, folders, modules, maker, readConfig, readSpec, onMade, inherited }) {
  /** Packages that a build is about to use must not go meanwhile. */
  let isBuilding = false

  return { plan, prune: pruneModules }

  /**
   * Refuses at once what would fail, and says how the rest is done: fetching, exporting and building may take minutes.
   * @param {Wanted} wanted
   * @returns {Promise<{ name: string, option: string, timeoutMs: number, make: (teller: Teller) => Promise<Release> }>}
   * @throws {DeckError} not-found, build-unconfirmed, unshared-files, invalid-config
   */
  async function plan (wanted) {
    const config = await readConfig()
    const home = await ownFolder(config)
    // A build has no secrets: packages of anybody run their scripts in it.
    const spec = await readSpec({ ...config, secrets: undefined }, home)
    const own = await findRepository(home, { env: inherited })
    const sources = await sourcesOf(spec, own)
    const [{ url }] = sources
    const where = { spec, home, own, sources }
    const known = url === null ? await look(wanted, where) : null
    await maker.checkWritten(spec, home)
    return {
      name: `deploy --git ${wanted.git}`,
      option: 'hooks.build.timeoutMs',
      timeoutMs: spec.config.hooks.build?.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      async make (teller) {
        const seen = known ?? await lookAgain(wanted, where, teller)
        const { commit, branch, author, subject } = seen.found
        teller.tell(`commit ${commit.slice(0, SHOWN_DIGITS)}${branch === null ? '' : ` of ${branch}`}: ${subject} (${author})`)
        const same = await findSame(seen.stamp)
        if (!same) return await makeRelease(seen, wanted, where, teller)
        teller.tell(`${same.id} is of this commit already: nothing is built`)
        return same
      }
    }
  }

  /**
   * @param {LaunchSpec} spec @param {{ gitDir: string } | null} own  the repository of the app's folder
   * @returns {Promise<Source[]>} at least one; only the first one can have an address
   */
  async function sourcesOf ({ config: { releases: { git } } }, own) {
    const pushed = path.join(dataFolder, PUSHED)
    const more = existsSync(pushed) ? [{ gitDir: await realpath(pushed), url: null }] : []
    if (git !== undefined && !path.isAbsolute(git)) return [{ gitDir: path.join(dataFolder, FETCHED), url: git }, ...more]
    const named = git === undefined ? own : await findRepository(git, { env: inherited })
    if (git !== undefined && !named) throw new DeckError('invalid-config', `releases.git: expected a git repository that this user may read, received ${git}`)
    const all = [...(named ? [{ gitDir: named.gitDir, url: null }] : []), ...more]
    if (all.length > 0) return all
    throw new DeckError('invalid-config', 'releases.git: expected a repository, as the folder of the app is in none that git trusts, received none')
  }

  /** @param {Wanted} wanted @param {Where} where @returns {Promise<Look>} @throws {DeckError} not-found, build-unconfirmed */
  async function look ({ git, isGuessAccepted }, { spec, sources, own }) {
    for (const { gitDir, url } of sources) {
      const found = await findCommit(gitDir, git, { env: inherited })
      if (!found) continue
      const tree = readCommit(gitDir, found.commit, { env: inherited })
      const isThere = own !== null && (await tree.names(own.prefix)).length > 0
      if (!isThere && gitDir === own?.gitDir) {
        throw new DeckError('not-found', `git: expected a commit with the folder ${own.prefix || 'of the app'}, received ${found.commit.slice(0, SHOWN_DIGITS)}, which has none (${url ?? gitDir})`)
      }
      // The folder of the app may be in another repository.
      const prefix = isThere ? own.prefix : ''
      const build = await buildOf({ tree, prefix, hook: spec.config.hooks.build })
      if (build?.isGuess && !isGuessAccepted && !isKnownBuild(build)) {
        throw new DeckError('build-unconfirmed', `hooks.build: expected a command, received none; as far as can be guessed, ${build.text} builds the app. Accept that, or set hooks.build`, { details: { guess: build.text } })
      }
      return { gitDir, prefix, found, build, stamp: stampOf({ commit: found.commit, prefix, build }, spec) }
    }
    const places = sources.map(({ gitDir, url }) => url ?? gitDir).join(' or ')
    throw new DeckError('not-found', `git: expected a branch, a tag or a commit of ${places}, received ${JSON.stringify(git)}`)
  }

  /** @param {Wanted} wanted @param {Where} where @param {Teller} teller */
  async function lookAgain (wanted, where, { exec, tell }) {
    const [{ gitDir, url }] = where.sources
    const isThere = COMMIT.test(wanted.git) && existsSync(gitDir) && await findCommit(gitDir, wanted.git, { env: inherited })
    if (!isThere) {
      tell(`fetching ${url}`)
      await fetchAll({ url: String(url), gitDir, env: inherited, exec })
    }
    return await look(wanted, where)
  }

  /** @param {Build} build @returns {boolean} whether a release was built in that way */
  function isKnownBuild ({ text }) {
    return catalogue.newestFirst().some(({ release }) => release.build === text)
  }

  /** @param {string} stamp @returns {Promise<Release | null>} the newest release of the same commit that has the variables and arguments of now */
  async function findSame (stamp) {
    const built = catalogue.newestFirst().filter((item) => item.stamp === stamp && existsSync(item.release.entry))
    if (built.length === 0) return null
    const { path: folder, cwd = folder } = built[0].release
    const spec = await readSpec(await readConfig(folder), cwd)
    const same = built.find(({ release }) => release.environment?.digest === spec.digest)
    if (!same) return null
    same.spec = spec
    return same.release
  }

  /**
   * @param {Look} seen @param {Wanted} wanted @param {Where} where @param {Teller} teller
   * @returns {Promise<Release>} which is whole
   */
  async function makeRelease ({ gitDir, prefix, found, build, stamp }, { actor, note }, { spec, home }, teller) {
    const { exec, check } = teller
    const number = catalogue.takeNumber()
    const id = `r${number}`
    isBuilding = true
    try {
      const { top, index } = await folders.begin(id)
      const names = await exportCommit({ gitDir, commit: found.commit, to: top, index, env: inherited, exec })
      const folder = await realpath(path.join(top, prefix))
      if (folder !== top && !isBelow(folder, top)) throw new DeckError('entry-not-found', `the commit has a link in the place of ${prefix}, which leads out of it`)
      await folders.share({ top, folder }, { shared: spec.config.releases.shared, home })
      const cached = await buildRelease(build, { id, top, folder, names, spec }, teller)
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
   * @param {Build | null} build @param {{ id: string, top: string, folder: string, names: string[], spec: LaunchSpec }} release @param {Teller} teller
   * @returns {Promise<string | null>} the name of the packages that are to be kept
   */
  async function buildRelease (build, { id, top, folder, names, spec }, { exec, tell, check }) {
    if (!build) return null
    const env = { ...withoutGitVariables(withoutOwnVariables({ ...inherited, ...spec.values })), ...withOwnNode(spec.values.PATH ?? inherited.PATH), CLUSTERDECK_HOOK: 'build', CLUSTERDECK_RELEASE: id }
    const { install, command, lock } = build
    const name = install?.key && lock && await isCacheable(names, top) ? modules.nameOf(digestOf([install.key, process.version, process.platform, process.arch]), lock.digest) : null
    const startedAt = performance.now()
    const filled = name === null ? null : await modules.fill(name, top)
    let digest = filled?.digest
    if (filled) tell(`${filled.files} files of packages are those of the last ${lock?.name}, linked in ${durationText(performance.now() - startedAt)}`)
    else if (install) {
      // Packages that only a build needs are left out where it is "production".
      await run(install.command, path.join(top, install.folder), { ...env, NODE_ENV: undefined })
      if (name !== null) digest = (await modules.take(name, { id, top })).digest
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

  /**
   * Whether only the lock file decides what is installed.
   * @param {string[]} names of all files @param {string} top
   */
  async function isCacheable (names, top) {
    if (names.some((name) => /(^|\/)node_modules(\/|$)/.test(name))) return false
    const packages = names.filter((name) => /(^|\/)package\.json$/.test(name))
    for (const name of packages) if (hasInstallScript(await readFile(path.join(top, name), 'utf8').catch(() => ''))) return false
    return true
  }

  /** @param {{ top: string, folder: string, home: string, prefix: string }} release @param {LaunchSpec['config']} config @throws {DeckError} entry-not-found */
  async function placeOf ({ top, folder, home, prefix }, { entry, cwd }) {
    const found = await placeIn(folder, { top, entry, cwd })
    if ('outside' in found) throw new DeckError('entry-not-found', `entry: expected a file of the commit, received ${found.outside}, which leads out of it`)
    if ('missing' in found) throw new DeckError('entry-not-found', `entry: expected a file of the commit or of its build, received ${found.missing}, which is not there`)
    const same = await realpath(inRelease({ top, home, prefix })(found.cwd)).catch(() => null)
    return { ...found, cwd: same !== null && (same === top || isBelow(same, top)) ? same : found.cwd }
  }

  /** @param {{ commit: string, prefix: string, build: Build | null }} what @param {LaunchSpec} spec */
  function stampOf ({ commit, prefix, build }, { config: { hooks, releases, entry, cwd, args, execArgv } }) {
    return `git ${digestOf([commit, prefix, build?.text, hooks.build?.command, build?.install?.key, process.version, releases.shared, entry, cwd, args, execArgv])}`
  }
}

/**
 * What is in the working tree of the app, also above its package as in a workspace, is in the release too.
 * @param {{ top: string, home: string, prefix: string }} release @returns {(file: string) => string}
 */
function inRelease ({ top, home, prefix }) {
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

/** @param {unknown[]} parts */
function digestOf (parts) {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

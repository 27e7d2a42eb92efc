import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { formatCommit } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { buildOf } from './build-commands.js'
import { findCommit, findRepository, readCommit, readRefs } from './git.js'
import { fetchAll } from './git-export.js'
import { withoutUrlSecrets } from '../system/without-url-secrets.js'
import { ownFolder } from './resolve.js'

/** @typedef {import('./catalogue.js').Item} Item */
/** @typedef {import('./launch-spec.js').LaunchSpec} LaunchSpec */
/** @typedef {import('./build-commands.js').Build} Build */
/** Where commits are looked for; `url`: of which it has the commits. @typedef {{ gitDir: string, url: string | null }} Source */
/** `home`: the app's package folder; `own`: its repository; `spec`: without secrets. @typedef {{ config: LaunchSpec['config'], spec: LaunchSpec, home: string, own: { gitDir: string, prefix: string } | null, sources: Source[] }} Where */
/** A commit that was found. `prefix`: the package folder in it, from the top. @typedef {{ gitDir: string, prefix: string, found: import('./git.js').Found, tree: ReturnType<typeof readCommit> }} Look */

/** In the data folder: what was fetched from `releases.git`, and what `setup-git-push` has made for pushes. */
const FETCHED = 'fetched.git'
const PUSHED = 'push.git'
const COMMIT = /^[0-9a-f]{40,64}$/
/** The others can be named all the same. */
const SHOWN_REFS = 50

/**
 * Finds the commit that is to be deployed, how it is built, and the release that is of it already.
 * @param {object} parts
 * @param {string} parts.dataFolder
 * @param {Pick<import('./catalogue.js').Catalogue, 'newestFirst'>} parts.catalogue
 * @param {(folder?: string) => Promise<LaunchSpec['config']>} parts.readConfig  for the app in that folder
 * @param {(config: LaunchSpec['config'], cwd: string) => Promise<LaunchSpec>} parts.readSpec  `cwd`: of the command that has the secrets
 * @param {Record<string, string | undefined>} parts.inherited  of the shell that the app is from
 */
export function createCommitFinder ({ dataFolder, catalogue, readConfig, readSpec, inherited }) {
  return {
    /** @returns {Promise<Where>} @throws {DeckError} invalid-config */
    async where () {
      const config = await readConfig()
      const home = await ownFolder(config)
      // A build has no secrets: packages of anybody run their scripts in it.
      const spec = await readSpec({ ...config, secrets: undefined }, home)
      const own = await findRepository(home, { env: inherited })
      return { config, spec, home, own, sources: await sourcesOf(spec, own) }
    },

    /** @param {string} git @param {Where} where @returns {Promise<string | null>} the address from which has to be fetched first, as it may be shown; null: from none */
    async addressToFetch (git, { sources: [{ gitDir, url }] }) {
      const isThere = COMMIT.test(git) && existsSync(gitDir) && await findCommit(gitDir, git, { env: inherited })
      return isThere || url === null ? null : withoutUrlSecrets(url)
    },

    /** @param {Where} where @param {{ exec: import('./git-export.js').Exec, tell: (line: string) => void }} tools @throws {DeckError} git-failed */
    async fetch ({ sources: [{ gitDir, url }] }, { exec, tell }) {
      tell(`fetching ${url}`)
      await fetchAll({ url: String(url), gitDir, env: inherited, exec })
    },

    /** @returns {Promise<import('./git.js').Ref[]>} the branches and tags with the newest commits, as they were fetched last @throws {DeckError} invalid-config */
    async refs () {
      const { sources } = await this.where()
      const lists = await Promise.all(sources.filter(({ gitDir }) => existsSync(gitDir)).map(({ gitDir }) => readRefs(gitDir, { limit: SHOWN_REFS }, { env: inherited })))
      const byName = new Map(lists.flat().reverse().map((ref) => [`${ref.kind} ${ref.name}`, ref]))
      return [...byName.values()].sort((one, other) => Date.parse(other.at) - Date.parse(one.at)).slice(0, SHOWN_REFS)
    },

    /** @param {string} git @param {Where} where @returns {Promise<Look>} @throws {DeckError} not-found */
    async find (git, { sources, own }) {
      for (const { gitDir, url } of sources) {
        const found = await findCommit(gitDir, git, { env: inherited })
        if (!found) continue
        const tree = readCommit(gitDir, found.commit, { env: inherited })
        const isThere = own !== null && (await tree.names(own.prefix)).length > 0
        if (!isThere && gitDir === own?.gitDir) {
          throw new DeckError('not-found', `git: expected a commit with the folder ${own.prefix || 'of the app'}, received ${formatCommit(found.commit)}, which has none (${url ?? gitDir})`)
        }
        // The folder of the app may be in another repository.
        return { gitDir, prefix: isThere ? own.prefix : '', found, tree }
      }
      const places = withoutUrlSecrets(sources.map(({ gitDir, url }) => url ?? gitDir).join(' or '))
      throw new DeckError('not-found', `git: expected a branch, a tag or a commit of ${places}, received ${JSON.stringify(git)}`)
    },

    /** @param {Look} seen @param {Where} where @returns {Promise<Build | null>} as buildOf() @throws {DeckError} build-unconfirmed */
    buildOf: ({ tree, prefix }, { spec }) => buildOf({ tree, prefix, hook: spec.config.hooks.build }),

    /**
     * What nobody has configured may be built as the lock file suggests, once somebody has accepted that.
     * @param {Build | null} build @param {boolean} isAccepted @throws {DeckError} build-unconfirmed
     */
    checkGuess (build, isAccepted) {
      if (!build?.isGuess || isAccepted || catalogue.newestFirst().some(({ release }) => release.build === build.text)) return
      throw new DeckError('build-unconfirmed', `hooks.build: expected a command, received none; as far as can be guessed, ${build.text} builds the app. Accept that, or set hooks.build`, { details: { guess: build.text } })
    },

    /** @param {Look} seen @param {Build | null} build @param {Where} where @returns {string} the same for releases that are made in the same way of the same commit */
    stampOf ({ found: { commit }, prefix }, build, { spec: { config: { hooks, releases, entry, cwd, args, execArgv, runtime } } }) {
      return `git ${digestOf([commit, prefix, build?.text, hooks.build?.command, build?.install?.key, process.version, releases.shared, entry, cwd, args, execArgv, runtime])}`
    },

    /** @param {string} stamp @returns {Promise<{ item: Item, spec: LaunchSpec } | null>} the newest release of the same commit that has the variables and arguments of now */
    async findSame (stamp) {
      const built = catalogue.newestFirst().filter((item) => item.stamp === stamp && existsSync(item.release.entry))
      if (built.length === 0) return null
      const { path: folder, cwd = folder } = built[0].release
      const spec = await readSpec(await readConfig(folder), cwd)
      const item = built.find(({ release }) => release.environment?.digest === spec.digest)
      return item ? { item, spec } : null
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
}

/** @param {unknown[]} parts */
function digestOf (parts) {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

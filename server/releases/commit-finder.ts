import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import path from 'node:path'
import { formatCommit } from '../../public/format.ts'
import { DeckError } from '../errors.ts'
import { buildOf, type Build } from './build-commands.ts'
import { findCommit, findRepository, readCommit, readRefs, type Found, type Ref } from './git.ts'
import { fetchAll, type Exec } from './git-export.ts'
import { withoutUrlSecrets } from '../system/without-url-secrets.ts'
import { ownFolder } from './resolve.ts'
import type { Item } from './catalogue.ts'
import type { Launches } from './launches.ts'
import type { Stock } from './stock.ts'
import type { LaunchSpec } from './launch-spec.ts'

/** Where commits are looked for; `url`: of which it has the commits. */
type Source = { gitDir: string, url: string | null }
/** `home`: the app's package folder; `own`: its repository; `spec`: without secrets. */
export type Where = { config: LaunchSpec['config'], spec: LaunchSpec, home: string,
  own: { gitDir: string, prefix: string } | null, sources: Source[] }
/** A commit that was found. `prefix`: the package folder in it, from the top. */
export type Look = { gitDir: string, prefix: string, found: Found, tree: ReturnType<typeof readCommit> }

/** In the data folder: what was fetched from `releases.git`, and what `setup-git-push` has made for pushes. */
const FETCHED = 'fetched.git'
const PUSHED = 'push.git'
const COMMIT = /^[0-9a-f]{40,64}$/
/** The others can be named all the same. */
const SHOWN_REFS = 50

/** Finds the commit that is to be deployed, how it is built, and the release that is of it already. */
export function createCommitFinder ({ dataDir, catalogue, inherited }: Stock, { readConfig, readWith }: Launches) {
  return {
    /** @throws {DeckError} invalid-config */
    async where (): Promise<Where> {
      const config = await readConfig()
      const home = await ownFolder(config)
      // A build has no secrets: packages of anybody run their scripts in it.
      const spec = await readWith({ ...config, secrets: undefined }, home)
      const own = await findRepository(home, { env: inherited })
      return { config, spec, home, own, sources: await sourcesOf(spec, own) }
    },

    /** @returns the address from which has to be fetched first, as it may be shown; null: from none */
    async addressToFetch (git: string, { sources: [{ gitDir, url }] }: Where): Promise<string | null> {
      const isThere = COMMIT.test(git) && existsSync(gitDir) && await findCommit(gitDir, git, { env: inherited })
      return isThere || url === null ? null : withoutUrlSecrets(url)
    },

    /** @throws {DeckError} git-failed */
    async fetch ({ sources: [{ gitDir, url }] }: Where, { exec, tell }: { exec: Exec, tell: (line: string) => void }) {
      tell(`fetching ${url}`)
      await fetchAll({ url: String(url), gitDir, env: inherited, exec })
    },

    /**
     * Returns the branches and tags with the newest commits, as they were fetched last.
     * @throws {DeckError} invalid-config
     */
    async refs (): Promise<Ref[]> {
      const { sources } = await this.where()
      const lists = await Promise.all(
        sources.filter(({ gitDir }) => existsSync(gitDir)).map(({ gitDir }) =>
          readRefs(gitDir, { limit: SHOWN_REFS }, { env: inherited })
        )
      )
      const byName = new Map(lists.flat().reverse().map((ref) => [`${ref.kind} ${ref.name}`, ref]))
      return [...byName.values()].sort((one, other) => Date.parse(other.at) - Date.parse(one.at)).slice(0, SHOWN_REFS)
    },

    /** @throws {DeckError} not-found */
    async find (git: string, { sources, own }: Where): Promise<Look> {
      for (const { gitDir, url } of sources) {
        const found = await findCommit(gitDir, git, { env: inherited })
        if (!found) continue
        const tree = readCommit(gitDir, found.commit, { env: inherited })
        const isThere = own !== null && (await tree.names(own.prefix)).length > 0
        if (!isThere && gitDir === own?.gitDir) {
          throw new DeckError('not-found',
            `git: expected a commit with the folder ${own.prefix || 'of the app'}, received ${
              formatCommit(found.commit)
            }, which has none (${url ?? gitDir})`)
        }
        // The folder of the app may be in another repository.
        return { gitDir, prefix: isThere ? own.prefix : '', found, tree }
      }
      const places = withoutUrlSecrets(sources.map(({ gitDir, url }) => url ?? gitDir).join(' or '))
      throw new DeckError('not-found',
        `git: expected a branch, a tag or a commit of ${places}, received ${JSON.stringify(git)}`)
    },

    /** @returns as buildOf() @throws {DeckError} build-unconfirmed */
    buildOf: ({ tree, prefix }: Look, { spec }: Where): Promise<Build | null> =>
      buildOf({ tree, prefix, hook: spec.config.hooks.build }),

    /**
     * What nobody has configured may be built as the lock file suggests, once somebody has accepted that.
     * @throws {DeckError} build-unconfirmed
     */
    checkGuess (build: Build | null, isAccepted: boolean) {
      if (!build?.isGuess || isAccepted || catalogue.newestFirst().some(({ release }) => release.build === build.text))
        return
      throw new DeckError('build-unconfirmed',
        `hooks.build: expected a command, received none; as far as can be guessed, ${build.text} builds the app. Accept that, or set hooks.build`,
        { details: { guess: build.text } })
    },

    /** @returns the same for releases that are made in the same way of the same commit */
    stampOf ({ found: { commit }, prefix }: Look, build: Build | null,
      { spec: { config: { hooks, releases, entry, cwd, args, execArgv, runtime, appNode } } }: Where): string
    {
      return `git ${
        digestOf([commit, prefix, build?.text, hooks.build?.command, build?.install?.key,
          appNode?.version ?? process.versions.node, appNode?.file, releases.shared, entry, cwd, args, execArgv,
          runtime])
      }`
    },

    /** @returns the newest release of the same commit that has the variables and arguments of now */
    async findSame (stamp: string): Promise<{ item: Item, spec: LaunchSpec } | null> {
      const built = catalogue.newestFirst().filter((item) => item.stamp === stamp && existsSync(item.release.entry))
      if (built.length === 0) return null
      const { path: folder, cwd = folder } = built[0].release
      const spec = await readWith(await readConfig(folder), cwd)
      const item = built.find(({ release }) => release.environment?.digest === spec.digest)
      return item ? { item, spec } : null
    }
  }

  /** `own`: the repository of the app's folder @returns at least one; only the first one can have an address */
  async function sourcesOf ({ config: { releases: { git } } }: LaunchSpec,
    own: { gitDir: string } | null): Promise<Source[]>
  {
    const pushed = path.join(dataDir.folder, PUSHED)
    const more = existsSync(pushed) ? [{ gitDir: await realpath(pushed), url: null }] : []
    if (git !== undefined && !path.isAbsolute(git))
      return [{ gitDir: path.join(dataDir.folder, FETCHED), url: git }, ...more]
    const named = git === undefined ? own : await findRepository(git, { env: inherited })
    if (git !== undefined && !named)
      throw new DeckError('invalid-config',
        `releases.git: expected a git repository that this user may read, received ${git}`)
    const all = [...(named ? [{ gitDir: named.gitDir, url: null }] : []), ...more]
    if (all.length > 0) return all
    throw new DeckError('invalid-config',
      'releases.git: expected a repository, as the folder of the app is in none that git trusts, received none')
  }
}

function digestOf (parts: unknown[]) {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex')
}

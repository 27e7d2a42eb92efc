import { DeckError } from '../errors.ts'
import { readLaunchSpec, reloadConfig, type LaunchSource, type LaunchSpec } from './launch-spec.ts'
import { folderBelow } from './resolve.ts'
import type { Config } from '../config/config.ts'
import type { Release } from '../lifecycle/state.ts'
import type { Variables } from './environment.ts'
import type { createMaker } from './maker.ts'
import type { Stock } from './stock.ts'

export type Launches = Awaited<ReturnType<typeof openLaunches>>

/**
 * How the workers of each release are started, and what was read for the last deploy. The values of variables are kept
 * in memory alone. `cwd`: in which a command runs that has the secrets.
 * @throws {DeckError} invalid-config, secrets-failed
 */
export async function openLaunches (stock: Stock, maker: Pick<ReturnType<typeof createMaker>, 'locate'>, cwd: string) {
  const { config, catalogue, key, mask, order, inherited, variables, canWait } = stock
  const { reload = async () => config, source = () => ({ order, inherited }) } = stock
  /** Why the secrets are not known yet. */
  let missing: DeckError | null = null
  let latest = await readFirst()

  return {
    /** What was read for the last deploy. */
    latest: () => latest,

    /** `spec`: of the release that is made now */
    use (spec: LaunchSpec) {
      latest = spec
    },

    /** Null: its secrets are not known yet. */
    known: () => missing ? null : latest,

    latestSpec,
    readConfig,
    readSpec,
    readWith,
    checkKind,

    /** @returns whether it was possible: the secrets that were missing */
    async readMissing (): Promise<boolean> {
      try {
        latest = await readWith(await reloadConfig(reload), cwd)
        missing = null
        return true
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        missing = error
        return false
      }
    },

    /** By the newest configuration that could be read. */
    shown: {
      configured: () => latest.config as Config,
      hooks: () => latest.config.hooks,
      jobs: () => latest.config.jobs,

      /** What its releases have in common, and what none has. */
      parts () {
        const { shared, exclude } = latest.config.releases
        return { shared, exclude }
      },

      /**
       * The configuration as it is read now, and as the last deploy has read it.
       * @throws {DeckError} invalid-config
       */
      configurations: async () => ({ now: await readConfig(), deployed: latest.config }),

      /** Why no worker can be started: the secrets could not be read yet. */
      secretsProblem: () => missing?.message ?? null,

      /**
       * How a release is started, with its variables but for those that are secret. Returns null: they are not known
       * yet.
       */
      launchOf (id: string): { spec: LaunchSpec, variables: Record<string, string | null> } | null {
        const spec = catalogue.find(id)?.spec ?? (missing ? null : latest)
        return spec &&
          { spec, variables: Object.fromEntries(Object.entries(spec.values).filter(([name]) =>
            !(name in spec.secrets)
          ).map(([name, value]) => [name, value ?? null])) }
      },

      /**
       * Returns the variables of its workers, which override those that they inherit.
       * @throws {DeckError} why they are not known yet
       */
      environment: (id: string): Variables => specOf(id).values,

      /** Returns the variables that its workers inherit @throws {DeckError} why the others are not known yet */
      inherited: (id: string): LaunchSource['inherited'] => specOf(id).inherited,

      /** Returns those of its variables that are secret @throws {DeckError} why they are not known yet */
      secrets: (id: string): Readonly<Record<string, string>> => specOf(id).secrets
    }
  }

  async function readFirst (): Promise<LaunchSpec> {
    try {
      return await readWith(config, cwd, { order, inherited }, variables)
    } catch (error) {
      if (!canWait || !(error instanceof DeckError) || error.code !== 'secrets-failed') throw error
      missing = error
      return { ...await readWith({ ...config, secrets: undefined }, cwd, { order, inherited }, variables), config }
    }
  }

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

  /** `folder`: in which a command runs that has the secrets; `known`: in place of what the files say now */
  async function readWith (from: LaunchSpec['config'], folder: string, by = source(), known?: typeof variables) {
    const spec = await readLaunchSpec(from, by, { key, cwd: folder, known })
    mask.add(spec.secrets)
    return spec
  }

  /**
   * Node shares its sockets by node:cluster, and other programs share theirs by the kernel: nobody can do both at once.
   * @throws {DeckError} invalid-config
   */
  function checkKind ({ runtime = 'node', entry }: Pick<Release, 'runtime' | 'entry'>, node: Release['node']) {
    const { runtime: own = 'node' } = stock.first ?? config
    if (runtime === own || !stock.cluster()?.addresses?.().length) return
    const kinds = { node: 'by Node 20.19, 22.12 or later',
      other: node?.file === entry ? `by Node ${node.version}` : 'as a program of another language' }
    throw new DeckError('invalid-config',
      `node: expected an app that is still run ${
        own === 'node' ? kinds.node : 'by an older Node, or as a program of another language'
      }, as its workers share their sockets in another way, received one that is run ${
        kinds[runtime]
      }. Stop the app, and start it again`)
  }
}

import { DeckError } from '../errors.js'
import { changesBetween } from './changes.js'
import { commitsBetween } from './commits.js'
import { differencesBetween, partsLeftOut } from './file-differences.js'
import { mayChange } from './resolve.js'

/**
 * @typedef {import('../lifecycle/state.js').Release} Release
 * @typedef {import('./launch-spec.js').LaunchSpec} LaunchSpec
 * @typedef {Pick<Release, 'mode' | 'entry' | 'path' | 'cwd' | 'source' | 'package' | 'git'> & { id: string, isNew: boolean, arguments: number, nodeOptions: number, hooks: string[] }} Drafted
 *   `isNew: false`: it is a known one; `arguments`, `nodeOptions`: how many, as they may hold secrets; `hooks`: what runs with the deploy
 *
 * @typedef {object} Preview
 * @property {Drafted | null} release  null: a refusal says why it cannot be told
 * @property {{ text: string, isGuess: boolean, packages: 'kept' | 'installed' | null } | null} build  how a commit would be built; `packages`: of the same lock file, or installed; null: not known, or there is nothing to do
 * @property {Release['changed']} changed
 * @property {Awaited<ReturnType<typeof commitsBetween>>} commits  null: unknown, or none
 * @property {import('./file-differences.js').Differences | null} files  null: not known
 * @property {{ now: import('./launch-spec.js').WorkerConfig, deployed: import('./launch-spec.js').WorkerConfig } | null} config  as read now and for the last deploy; null: it was not read
 * @property {string[]} warnings
 *
 * Takes a reason for which it would be refused. @typedef {(error: DeckError) => void} Refuse
 */

/** The hooks of a deploy, in the order in which they run. */
export const DEPLOY_HOOKS = /** @type {const} */ (['beforeDeploy', 'afterDeploy'])

/**
 * Tells what a deploy or a rollback would do, by the drafts that a deploy makes. It changes nothing.
 * @param {object} parts
 * @param {Pick<import('./catalogue.js').Catalogue, 'find' | 'mustFind' | 'nextNumber'>} parts.catalogue
 * @param {Pick<ReturnType<typeof import('./maker.js').createMaker>, 'draft' | 'checkWritten'>} parts.maker
 * @param {Pick<ReturnType<typeof import('./manifests.js').createManifests>, 'since'>} parts.manifests
 * @param {string} parts.dataFolder
 * @param {Record<string, string | undefined>} parts.inherited  by git
 * @param {(path?: string) => Promise<LaunchSpec>} parts.readSpec
 * @param {() => LaunchSpec} parts.latest  of the last deploy
 * @param {() => string | null} parts.current  the id of the release that runs
 * @param {(id: string) => void} parts.checkReturn
 * @param {(release: Release) => Promise<void>} parts.checkThere
 * @param {(id: string) => string | null} parts.caveatOf  what a rollback to it would not bring back
 */
export function createPreviews ({ catalogue, maker, manifests, dataFolder, inherited, readSpec, latest, current, checkReturn, checkThere, caveatOf }) {
  return {
    /**
     * @param {{ path?: string }} wanted  as for a deploy @param {Refuse} refuse  takes each refusal of the deploy
     * @returns {Promise<Preview>}
     */
    async ofDeploy ({ path }, refuse) {
      const spec = await attempt(refuse, () => readSpec(path))
      if (!spec) return unknownPreview()
      const config = { now: spec.config, deployed: latest().config }
      const drafted = await attempt(refuse, () => maker.draft(spec, path))
      if (!drafted) return { ...unknownPreview(), config }
      const { copy, place, found, about, same, changed } = drafted
      if (copy) await attempt(refuse, () => maker.checkWritten(spec, place.folder))
      const { args, execArgv, hooks } = spec.config
      const running = catalogue.find(current() ?? '')?.release
      const next = { ...about, source: about.source ?? null, path: place.folder, createdAt: new Date().toISOString() }
      const [commits, files] = running
        ? await Promise.all([commitsBetween(running, next, inherited), filesSince(running, place.folder, spec.config)])
        : [null, null]
      return {
        release: {
          id: same?.release.id ?? `r${catalogue.nextNumber()}`,
          isNew: same === undefined,
          ...describe({ ...found, ...about }),
          arguments: args.length,
          nodeOptions: execArgv.length,
          hooks: DEPLOY_HOOKS.filter((name) => hooks[name] !== undefined)
        },
        build: null,
        changed,
        commits,
        files,
        config,
        warnings: running ? warningsOf(running, place.folder, files) : []
      }
    },

    /**
     * @param {string | null} id  null: there is none, which is refused already @param {Refuse} refuse
     * @returns {Promise<Preview>}
     */
    async ofRollback (id, refuse) {
      if (id === null) return unknownPreview()
      const item = await attempt(refuse, async () => catalogue.mustFind(id))
      if (!item) return unknownPreview()
      const { release } = item
      await attempt(refuse, async () => checkReturn(id))
      await attempt(refuse, () => checkThere(release))
      const running = catalogue.find(current() ?? '')
      const isElsewhere = running && running.release.path !== release.path
      const [commits, files] = running
        ? await Promise.all([commitsBetween(running.release, release, inherited), isElsewhere ? filesSince(running.release, release.path, latest().config) : null])
        : [null, null]
      const caveat = caveatOf(id)
      return {
        release: { id, isNew: false, ...describe(release), arguments: release.args?.length ?? 0, nodeOptions: release.execArgv?.length ?? 0, hooks: [] },
        build: null,
        changed: running ? changesBetween(running, item) : null,
        commits,
        files,
        config: null,
        warnings: caveat === null ? [] : [caveat]
      }
    }
  }

  /** @param {Release} running @param {string} folder of the next one @param {import('./launch-spec.js').WorkerConfig} config */
  function filesSince (running, folder, config) {
    const left = partsLeftOut(config)
    if (mayChange(running) && running.path === folder) return manifests.since(running, left)
    return differencesBetween(running.path, folder, { left, data: dataFolder })
  }
}

/** @returns {Preview} of what was refused before anything could be told of it */
export function unknownPreview () {
  return { release: null, build: null, changed: null, commits: null, files: null, config: null, warnings: [] }
}

/** @param {Pick<Release, 'mode' | 'entry' | 'path' | 'cwd' | 'source' | 'package' | 'git'>} release */
export function describe ({ mode, entry, path, cwd, source = null, package: about = null, git = null }) {
  return { mode, entry, path, cwd, source, package: about, git }
}

/** @param {Release} running @param {string} folder of the next one @param {import('./file-differences.js').Differences | null} files */
function warningsOf ({ id, mode, path }, folder, files) {
  const isUnchanged = files !== null && Object.values(files).every(({ length }) => length === 0)
  if (!mayChange({ mode }) || path !== folder || isUnchanged) return []
  return [`${id} runs from the same folder, whose files have changed: it may not be able to come back. With releases.mode: folder every release keeps its files`]
}

/**
 * @template T @param {Refuse} refuse @param {() => Promise<T>} work
 * @returns {Promise<T | null>} null: it was refused
 */
export async function attempt (refuse, work) {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    refuse(error)
    return null
  }
}

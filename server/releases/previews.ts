import { DeckError, onRefusal } from '../errors.ts'
import { changesBetween } from './changes.ts'
import { commitsBetween } from './commits.ts'
import { differencesBetween, partsLeftOut, type Differences } from './file-differences.ts'
import { mayChange } from './resolve.ts'
import type { Preview as ShownPreview } from '../api/shapes.ts'
import type { Release } from '../lifecycle/state.ts'
import type { WorkerConfig } from './launch-spec.ts'
import type { ReleaseParts, Stock } from './stock.ts'

/** What is known of the release of a deploy or a rollback; the rest of a preview is about the cluster. */
export type Preview = Pick<ShownPreview, 'release' | 'build' | 'changed' | 'commits' | 'warnings'> & {
  /** null: not known */
  files: Differences | null,
  /** as read now and for the last deploy; null: it was not read */
  config: { now: WorkerConfig, deployed: WorkerConfig } | null
}
export type Refuse = (error: DeckError) => void

/** The hooks of a deploy, in the order in which they run. */
export const DEPLOY_HOOKS = ['beforeDeploy', 'afterDeploy'] as const

/** Tells what a deploy or a rollback would do, by the drafts that a deploy makes. It changes nothing. */
export function createPreviews ({ catalogue, manifests, dataDir, inherited, running: findRunning }: Stock,
  { maker, launches: { readSpec, latest }, returns }: ReleaseParts)
{
  return {
    /** `wanted`: as for a deploy; `refuse`: takes each refusal of the deploy */
    async ofDeploy ({ path }: { path?: string }, refuse: Refuse): Promise<Preview> {
      const spec = await unlessRefused(refuse, () => readSpec(path))
      if (!spec) return unknownPreview()
      const config = { now: spec.config, deployed: latest().config }
      const drafted = await unlessRefused(refuse, () => maker.draft(spec, path))
      if (!drafted) return { ...unknownPreview(), config }
      const { copy, place, found, about, same, changed } = drafted
      if (copy) await unlessRefused(refuse, () => maker.checkWritten(spec, place.folder))
      const { args, execArgv, hooks } = spec.config
      const running = findRunning()?.release
      const next = { ...about, source: about.source ?? null, path: place.folder, createdAt: new Date().toISOString() }
      const [commits, files] = running
        ? await Promise.all([commitsBetween(running, next, inherited), filesSince(running, place.folder, spec.config)])
        : [null, null]
      return {
        release: { id: same?.release.id ?? `r${catalogue.nextNumber()}`, isNew: same === undefined,
          ...describe({ ...found, ...about }), arguments: args.length, nodeOptions: execArgv.length,
          hooks: DEPLOY_HOOKS.filter((name) => hooks[name] !== undefined) },
        build: null,
        changed,
        commits,
        files,
        config,
        warnings: running ? warningsOf(running, place.folder, files) : []
      }
    },

    /** `id`: null: there is none, which is refused already */
    async ofRollback (id: string | null, refuse: Refuse): Promise<Preview> {
      if (id === null) return unknownPreview()
      const item = await unlessRefused(refuse, async () => catalogue.mustFind(id))
      if (!item) return unknownPreview()
      const { release } = item
      await unlessRefused(refuse, async () => returns.checkReturn(id))
      await unlessRefused(refuse, () => returns.checkThere(release))
      const running = findRunning()
      const isElsewhere = running && running.release.path !== release.path
      const [commits, files] = running
        ? await Promise.all([commitsBetween(running.release, release, inherited),
          isElsewhere ? filesSince(running.release, release.path, latest().config) : null])
        : [null, null]
      const caveat = returns.caveatOf(id)
      return {
        release: { id, isNew: false, ...describe(release), arguments: release.args?.length ?? 0,
          nodeOptions: release.execArgv?.length ?? 0, hooks: [] },
        build: null,
        changed: running ? changesBetween(running, item) : null,
        commits,
        files,
        config: null,
        warnings: caveat === null ? [] : [caveat]
      }
    }
  }

  /** `folder`: of the next one */
  function filesSince (running: Release, folder: string, config: WorkerConfig) {
    const left = partsLeftOut(config)
    if (mayChange(running) && running.path === folder) return manifests.since(running, left)
    return differencesBetween(running.path, folder, { left, data: dataDir.folder })
  }
}

/** @returns of what was refused before anything could be told of it */
export function unknownPreview (): Preview {
  return { release: null, build: null, changed: null, commits: null, files: null, config: null, warnings: [] }
}

export function describe (
  { mode, entry, path, cwd, source = null, package: about = null, git = null }: Pick<Release,
    'mode' | 'entry' | 'path' | 'cwd' | 'source' | 'package' | 'git'>
) {
  return { mode, entry, path, cwd, source, package: about, git }
}

/** `folder`: of the next one */
function warningsOf ({ id, mode, path }: Release, folder: string, files: Differences | null) {
  const isUnchanged = files !== null && Object.values(files).every(({ length }) => length === 0)
  if (!mayChange({ mode }) || path !== folder || isUnchanged) return []
  return [
    `${id} runs from the same folder, whose files have changed: it may not be able to come back. With releases.mode: folder every release keeps its files`
  ]
}

/** Null: it was refused */
export async function unlessRefused<T> (refuse: Refuse, work: () => Promise<T>): Promise<T | null> {
  return await work().catch(onRefusal((error) => {
    refuse(error)
    return null
  }))
}

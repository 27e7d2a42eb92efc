import { phaseOf } from '../lifecycle/rollout/stages.ts'
import { mayChange } from '../releases/resolve.ts'
import type { Cluster } from './cluster.ts'

/** Which files the workers of each release have loaded. Returns what notes them. */
export function createLoadedFiles (cluster: Pick<Cluster, 'state' | 'drift' | 'on' | 'emit'>) {
  let lastDeploy: number | null = null
  /** The first worker that loads the files of a deploy which begins now, even if its release is known already. */
  let { nextWorker } = cluster.state
  cluster.on('turn', () => {
    const { rollout } = cluster.state
    const hasBegun = rollout?.kind === 'deploy' && rollout.id !== lastDeploy && phaseOf(rollout) !== 'preparing'
    if (hasBegun && rollout.to) {
      lastDeploy = rollout.id
      cluster.drift.renew(rollout.to, nextWorker)
    }
    ;({ nextWorker } = cluster.state)
  })

  return function note (worker: number, { files }: { files: unknown }) {
    const known = cluster.state.workers[worker]
    if (!known || !Array.isArray(files)) return
    if (mayChange(cluster.state.releases[known.release]))
      cluster.drift.noteLoaded(known.release, files, { id: worker, forkedAt: Date.parse(known.startedAt) })
    cluster.emit('loaded', files)
  }
}

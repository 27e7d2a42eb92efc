import cluster from 'node:cluster'
import path from 'node:path'
import { BOOT_VARIABLE } from '../../workers/protocol.js'
import { createWorkerHandle } from './worker-handle.js'

/** @typedef {ReturnType<typeof createForker>} Forker */

const PRELOAD = new URL('../../workers/preload.js', import.meta.url).href

/**
 * Starts workers through node:cluster.
 * @param {Pick<import('../config.js').Config, 'args' | 'execArgv' | 'cwd' | 'dispatch' | 'ready'>} config
 * @param {{ crashFolder: string }} options
 */
export function createForker ({ args, execArgv, cwd, dispatch, ready }, { crashFolder }) {
  cluster.schedulingPolicy = dispatch === 'round-robin' ? cluster.SCHED_RR : cluster.SCHED_NONE

  /**
   * @param {{ worker: number, slot: number, release: import('../lifecycle/state.js').Release }} order
   * @param {Parameters<typeof createWorkerHandle>[1]} hooks
   * @returns {import('./worker-handle.js').WorkerHandle}
   * @throws where the system has no process to give
   */
  return function fork ({ worker: id, slot, release }, hooks) {
    // Global to node:cluster, so set anew before every fork: each slot has its own release.
    cluster.setupPrimary({ exec: release.entry, args, execArgv: [...execArgv, '--import', PRELOAD], cwd })
    const crashFile = path.join(crashFolder, `${process.pid}-${id}.json`)
    /** @type {import('../../workers/protocol.js').BootSettings} */
    const settings = { dispatch, readySignal: ready.signal, crashFile }
    const worker = cluster.fork({
      CLUSTERDECK_SLOT: slot,
      CLUSTERDECK_RELEASE: release.id,
      CLUSTERDECK_TOKEN: undefined,
      NODE_APP_INSTANCE: slot - 1,
      [BOOT_VARIABLE]: JSON.stringify(settings)
    })
    if (worker.id !== id) {
      worker.process.kill('SIGKILL')
      throw new Error(`expected node:cluster to make worker ${id}, received ${worker.id}: something else forks in this process`)
    }
    return createWorkerHandle(worker, hooks, { crashFile })
  }
}

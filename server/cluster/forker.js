import cluster from 'node:cluster'
import path from 'node:path'
import { BOOT_VARIABLE } from '../../workers/protocol.js'
import { createWorkerHandle } from './worker-handle.js'

/** @typedef {ReturnType<typeof createForker>} Forker */

/** What is the master's own business: its secret, and what systemd told it. */
const NOT_FOR_APPS = Object.freeze(Object.fromEntries([
  'CLUSTERDECK_TOKEN', 'NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES'
].map((name) => [name, undefined])))

const PRELOAD = new URL('../../workers/preload.js', import.meta.url).href

/**
 * Starts workers through node:cluster.
 * @param {Pick<import('../config.js').Config, 'args' | 'execArgv' | 'cwd' | 'dispatch' | 'ready' | 'drain' | 'stop' | 'crash' | 'orphanMs'>} config
 * @param {{ crashFolder: string, orderFolder: string, outlives: () => boolean }} options `outlives`: whether a worker is to outlive this master
 */
export function createForker ({ args, execArgv, cwd, dispatch, ready, drain, stop, crash, orphanMs }, { crashFolder, orderFolder, outlives }) {
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
    const name = `${process.pid}-${id}.json`
    const crashFile = path.join(crashFolder, name)
    const orderFile = path.join(orderFolder, name)
    /** @type {import('../../workers/protocol.js').BootSettings} */
    const settings = {
      worker: id,
      dispatch,
      readySignal: ready.signal,
      crashFile,
      crash,
      orphan: { outlives: outlives(), orderFile, afterMs: orphanMs, ...drain, ...stop }
    }
    const worker = cluster.fork({
      CLUSTERDECK_SLOT: slot,
      CLUSTERDECK_RELEASE: release.id,
      ...NOT_FOR_APPS,
      NODE_APP_INSTANCE: slot - 1,
      [BOOT_VARIABLE]: JSON.stringify(settings)
    })
    return createWorkerHandle(worker, hooks, { crashFile, orderFile })
  }
}

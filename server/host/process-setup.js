import { hangOptions } from '../app/cluster.js'
import { isConfigLoader } from '../config/file.js'
import { startBeat } from '../keeper/beat.js'
import { createReaper } from '../keeper/reaper.js'
import { listenForSignals } from '../system/signals.js'
import { tellServiceManager } from '../systemd/service-manager.js'

/** @typedef {import('../app/app.js').App} App */
/** @typedef {import('./host.js').Host} Host */
/** @typedef {import('./shutdown.js').Shutdown} Shutdown */

/**
 * Takes over what concerns the process as a whole: its signals, the service manager, orphans.
 * @param {App} app @param {Host} host @param {Shutdown} shutdown
 */
export function setUpProcess (app, host, shutdown) {
  const { events, supervisor, settings } = app
  const { keeper } = host
  const { leave, untilDeploying } = listenToSignals(app, host, shutdown)
  tellServiceManager({ events, supervisor, settings, keeper }, { sources: [process, keeper.signals], untilDeploying })
  reapOrphans(() => [app], host)
  shutdown.stopped.then(leave)
}

/**
 * Tells the keeper that this master has started and answers, and the history where the keeper is lost.
 * @param {Pick<import('../config/config.js').Config, 'keeper' | 'watchdog'>} options
 * @param {{ keeper: import('../keeper/link.js').KeeperLink, events: import('../events/stream.js').EventStream }} parts
 */
export function reportToKeeper (options, { keeper, events }) {
  keeper.onLost(() => events.publish({ type: 'keeper.lost', actor: 'system', message: 'the keeper is gone: this master keeps running, but nothing restarts it if it dies' }))
  startBeat(keeper)
  keeper.send({ type: 'started', hearsSignals: true, giveUpAfter: options.keeper.giveUpAfter, hang: hangOptions(options) })
}

/** @param {App} app @param {Host} host @param {Shutdown} shutdown */
function listenToSignals ({ deck }, { terminal, keeper }, shutdown) {
  let deploying = Promise.resolve()
  const leave = listenForSignals({
    onStop () {
      terminal.line('stopping: the workers finish their requests; send the signal again to stop at once')
      attempt(() => deck.dispatch({ type: 'stop', actor: 'signal' }))
    },
    onKill: () => shutdown.stop(1),
    onDeploy: () => { deploying = attempt(() => deck.deploy({ actor: 'signal' })) },
    onRestart: () => attempt(() => deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'signal' }))
  }, { sources: [process, keeper.signals] })
  return { leave, untilDeploying: () => deploying }

  /** @param {() => unknown} work */
  async function attempt (work) {
    // What comes now is for the next master, to which the keeper says it again.
    if (shutdown.hasBegun) return
    try {
      await work()
    } catch (/** @type {any} */ error) {
      terminal.line(`refused: ${error.message}`)
    }
  }
}

/**
 * As process 1 of a container every orphan is its child; otherwise that is the keeper's business, or the system's.
 * @param {() => Pick<App, 'logs' | 'releases' | 'hooks' | 'jobs' | 'supervisor'>[]} apps  all that are in this process @param {Pick<Host, 'terminal'>} host
 */
export function reapOrphans (apps, { terminal }) {
  if (process.pid !== 1) return
  createReaper({
    isOurs: (pid) => isConfigLoader(pid) || apps().some((app) => isChild(app, pid)),
    onReaped: (exit) => apps().forEach(({ supervisor }) => supervisor.reaped(exit)),
    say: terminal.fail
  })
}

/** @param {Pick<App, 'logs' | 'releases' | 'hooks' | 'jobs' | 'supervisor'>} app @param {number} pid @returns {boolean} whether node waits for it */
function isChild ({ logs, releases, hooks, jobs, supervisor }, pid) {
  return supervisor.isWorker(pid) || logs.isArchiver(pid) || releases.isChild(pid) || hooks.isChild(pid) || jobs.isChild(pid)
}

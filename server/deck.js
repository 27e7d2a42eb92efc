import { resolveRelease } from './releases/resolve.js'

/** @typedef {import('./cluster/supervisor.js').Supervisor} Supervisor */

/**
 * The one facade between the admin side and the cluster.
 * @param {object} parts
 * @param {import('./config.js').Config} parts.config
 * @param {Supervisor} parts.supervisor
 * @param {import('./event-stream.js').EventStream} parts.events
 * @param {import('../db/history.js').History} parts.history
 * @param {{ pid: number, version: string, nodeVersion: string, startedAt: string }} parts.master
 */
export function createDeck ({ config, supervisor, events, history, master }) {
  return {
    events,
    history,

    snapshot () {
      return {
        ...supervisor.snapshot(),
        master: { ...master, rssBytes: process.memoryUsage.rss() },
        app: { entry: config.entry, cwd: config.cwd, addresses: supervisor.addresses() },
        dispatch: config.dispatch,
        lastEventId: events.lastId
      }
    },

    /** @param {any} command see server/lifecycle/state.js; @returns {any} @throws {import('./errors.js').DeckError} */
    dispatch (command) {
      const isDeploy = command.type === 'rollout' && command.kind === 'deploy'
      supervisor.dispatch(isDeploy ? { ...command, release: resolveRelease(config.entry) } : command)
      return RESULTS[/** @type {keyof typeof RESULTS} */ (command.type)](supervisor)
    }
  }
}

/** What a command answers with, once it has been accepted. */
const RESULTS = {
  rollout: (/** @type {Supervisor} */ supervisor) => supervisor.snapshot().rollout,
  'restart-worker': (/** @type {Supervisor} */ supervisor) => supervisor.snapshot().rollout,
  scale: (/** @type {Supervisor} */ supervisor) => ({ desiredWorkers: supervisor.snapshot().desiredWorkers }),
  stop: () => ({ state: 'stopping' })
}

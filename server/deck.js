import { accessSync, constants } from 'node:fs'
import { STEERING } from './config/steering.js'
import { createCrashDesk } from './crashes/crashes.js'
import { DeckError } from './errors.js'

/** @typedef {ReturnType<typeof createDeck>} Deck */
/** @typedef {import('./cluster/supervisor.js').Supervisor} Supervisor */

/**
 * The one facade between the admin side and the cluster.
 * @param {object} parts
 * @param {import('./config/config.js').Config} parts.config
 * @param {Supervisor} parts.supervisor
 * @param {import('./events/stream.js').EventStream} parts.events
 * @param {import('../db/history.js').History} parts.history
 * @param {Pick<import('./vitals/vitals.js').Vitals, 'series' | 'lastMinute' | 'metrics'>} parts.vitals
 * @param {{ pid: number, version: string, nodeVersion: string, startedAt: string }} parts.master
 * @param {import('./diagnostics/diagnostics.js').Diagnostics} parts.diagnostics
 * @param {import('./logs/logs.js').Logs} parts.logs
 * @param {Pick<import('./releases/registry.js').Releases, 'check' | 'before' | 'get' | 'list'>} parts.releases
 * @param {() => boolean} parts.isKept  by a keeper, which alone can change masters
 */
export function createDeck ({ config, supervisor, events, history, vitals, master, diagnostics, logs, releases, isKept }) {
  return {
    events,
    history,
    vitals,
    diagnostics,
    logs,
    releases: { get: releases.get, list: releases.list },
    crashes: createCrashDesk({ store: history.crashes, events, release: () => supervisor.snapshot().release?.id ?? null }),

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
      if (command.type === 'upgrade') checkUpgrade(command, { config, isKept: isKept() })
      supervisor.dispatch(command.kind === 'rollback' ? toRollback(command) : command)
      return RESULTS[/** @type {keyof typeof RESULTS} */ (command.type)](supervisor)
    },

    /**
     * Rolls out what is on the disk now. What is wrong with it for certain is refused at once; making the release of it
     * may take a while, and is the rollout's own first step.
     * @param {{ path?: string, note?: string, strategy?: any, actor: string }} wanted
     * @returns {Promise<any>} the rollout
     * @throws {import('./errors.js').DeckError} entry-not-found, path-refused, and what dispatch throws
     */
    async deploy ({ path, ...command }) {
      const spec = await releases.check({ path })
      return this.dispatch({ ...command, type: 'rollout', kind: 'deploy', source: { path, spec } })
    }
  }

  /** @param {any} command */
  function toRollback ({ release = releases.before(supervisor.snapshot().release.id), ...command }) {
    releases.get(release)
    return { ...command, source: { release } }
  }
}

/** What a command answers with, once it has been accepted. */
const RESULTS = {
  rollout: (/** @type {Supervisor} */ supervisor) => supervisor.snapshot().rollout,
  'restart-worker': (/** @type {Supervisor} */ supervisor) => supervisor.snapshot().rollout,
  'kill-worker': () => ({}),
  scale: (/** @type {Supervisor} */ supervisor) => ({ desiredWorkers: supervisor.snapshot().desiredWorkers }),
  ...Object.fromEntries(STEERING.map((type) => [type, (/** @type {Supervisor} */ supervisor) => supervisor.snapshot().rollout])),
  upgrade: (/** @type {Supervisor} */ supervisor) => supervisor.snapshot().upgrade,
  stop: () => ({ state: 'stopping' })
}

/** @param {{ execPath: string | null }} command @param {{ config: import('./config/config.js').Config, isKept: boolean }} master */
function checkUpgrade ({ execPath }, { config, isKept }) {
  if (!isKept) throw new DeckError('not-possible', 'an upgrade in place needs the keeper, and this master runs without one: restart it instead')
  if (config.dispatch === 'round-robin') {
    throw new DeckError('not-possible', 'an upgrade in place needs sockets that two masters can share: dispatch is "round-robin", expected "shared"')
  }
  try {
    if (execPath !== null) accessSync(execPath, constants.X_OK)
  } catch (/** @type {any} */ error) {
    throw new DeckError('invalid-body', `execPath: expected a program that can be executed, received ${JSON.stringify(execPath)} (${error.code})`)
  }
}

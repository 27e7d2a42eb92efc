import { existsSync } from 'node:fs'
import { readMemory } from '../system/data-dir.js'
import { identifyProcess, isAlive } from '../system/process-identity.js'

/** A master reads no checkpoint of another one. */
export const VERSION = 1

/** @typedef {{ version: string, nodeVersion: string }} Software */
/** @typedef {import('../jobs/jobs.js').JobsMemory} JobsMemory */

/**
 * How a master begins.
 * @typedef {object} Restored
 * @property {import('../keeper/link.js').Predecessor | null} lost  the master that did not end as it should; null: there was none
 * @property {boolean} isHandedOver  it has left its workers to this one on purpose
 * @property {Software | null} before  what the master before was
 * @property {import('../cluster/supervisor.js').SavedWorker[]} left  its workers, whether they still live or not
 * @property {string[]} sockets  the names of those that it had bound
 * @property {number | null} since  the event from which on its ids of workers are of one series, null: a new one begins
 * @property {import('../lifecycle/state.js').Release | null} release  null: it is to be made of what is configured
 * @property {import('../lifecycle/boot-room.js').BootCost | null} bootCost  what its last worker has needed to get ready
 * @property {import('../lifecycle/rollout/guard.js').Guard | null} guard  of that release, where it was deployed a short while ago
 * @property {Record<number, import('../lifecycle/addresses.js').Address[]>} addresses  where its last ready workers have listened, by slot
 * @property {Record<number, import('../lifecycle/state.js').Finished>} finished  slots whose program has come to its end, by number
 * @property {number} workers  how many are wanted
 * @property {import('../config/settings.js').RememberedChange[]} changes  what an operator has changed of the configuration
 * @property {import('../cluster/hooks.js').LeftHook[]} hooks  those that it had not seen ending
 * @property {JobsMemory} jobs  runs that it had not seen ending, and when it would have run which job next
 * @property {number} nextWorker
 * @property {number} firstOfNext  the first number that a master beside this one gives to its workers
 * @property {number} lastRelease  the highest n of `r<n>` that is known to be given out
 * @property {number} lastEvent  the newest event, or one shortly before it
 * @property {number} lastRollout
 */

/**
 * Continues after a crash where the last master stopped: with the release that was deployed last with success, and the
 * size that was asked for last. A changed configuration counts more.
 * @param {any} memory  what the master before has left, null if it has ended as it should
 * @param {Pick<import('../config/config.js').Config, 'entry' | 'workers'>} config
 * @param {import('../keeper/link.js').Predecessor | null} predecessor  its end, where the keeper saw it
 * @returns {Promise<Restored>}
 */
export async function restoreCheckpoint (memory, { entry, workers }, predecessor) {
  const data = await checkedMemory(memory)
  if (data === null) return { addresses: {}, finished: {}, lost: null, isHandedOver: false, before: null, left: [], sockets: [], since: null, release: null, bootCost: null, guard: null, workers, changes: [], hooks: [], jobs: { runs: [], due: {} }, nextWorker: 1, firstOfNext: 1, lastRelease: 0, lastEvent: 0, lastRollout: 0 }
  const { master, configured, desiredWorkers, release, handedOver } = data
  const keepsRelease = configured.entry === entry && existsSync(release.entry)
  return {
    lost: handedOver ? null : predecessor?.pid === master.pid ? predecessor : { pid: master.pid, code: null, signal: null },
    isHandedOver: handedOver === true,
    before: data.software ?? null,
    left: data.workers.map((/** @type {any} */ worker) => ({ ...worker, state: worker.state === 'unresponsive' ? 'ready' : worker.state, orphan: handedOver ? 'upgrade' : 'master-lost' })),
    sockets: data.sockets,
    since: data.since,
    release: keepsRelease ? release : null,
    bootCost: data.bootCost ?? null,
    guard: data.guard ?? null,
    addresses: data.addresses,
    // Another program has to do its work again.
    finished: keepsRelease ? data.finished : {},
    workers: configured.workers === workers ? desiredWorkers : workers,
    changes: /** @type {import('../config/settings.js').RememberedChange[]} */ (data.changes),
    hooks: data.hooks,
    jobs: /** @type {JobsMemory} */ (data.jobs),
    nextWorker: data.nextWorker,
    firstOfNext: data.firstOfNext ?? data.nextWorker,
    lastRelease: data.nextRelease - 1,
    lastEvent: data.lastEvent,
    lastRollout: data.nextRollout - 1
  }
}

/** @param {string} dataDir of an app that does not run here @returns {boolean} whether workers of a master that has died serve it */
export function hasLeftWorkers (dataDir) {
  const memory = /** @type {any} */ (readMemory(dataDir))
  return Array.isArray(memory?.workers) && memory.workers.some((/** @type {any} */ worker) => Number.isSafeInteger(worker?.identity?.pid) && isAlive(worker.identity))
}

/**
 * A damaged checkpoint is ignored: a wrong number in it could be any process's pid.
 * @param {unknown} memory null: there is none
 */
async function checkedMemory (memory) {
  if (memory === null) return null
  // Most starts have none, and need not wait for what checks it.
  const { CHECKPOINT } = await import('./checkpoint-shape.js')
  return CHECKPOINT.safeParse(memory).data ?? null
}

/**
 * Keeps the checkpoint in a file, which also outlasts the keeper, and with the keeper while the disk is full.
 * @param {{ file: import('../system/data-dir.js').DataDir['memory'], keeper: import('../keeper/link.js').KeeperLink['memory'], isAway?: boolean }} places
 *   `isAway`: the next master may look for the file somewhere else
 * @returns {import('../system/data-dir.js').DataDir['memory']}
 */
export function createCheckpointStore ({ file, keeper, isAway = false }) {
  return {
    read: () => keeper.read() ?? file.read(),

    write (content) {
      try {
        file.write(content)
        keeper.write(isAway ? content : null)
      } catch (error) {
        if (!keeper.write(content)) throw error
      }
    },

    clear () {
      keeper.write(null)
      file.clear()
    }
  }
}

/**
 * A master may be killed between an event and the memory of it, so both are asked.
 * @param {import('../cluster/supervisor.js').SavedWorker[]} left
 * @param {ReturnType<import('../../db/history.js').History['workerLives']>} lives
 * @param {{ id: number }[]} own  those of this master itself, in an upgrade
 * @returns {import('../cluster/supervisor.js').SavedWorker[]} those whose end is not on record
 */
export function reconcileWorkers (left, { ended, open }, own) {
  const forgotten = open.filter(({ worker }) => ![...left, ...own].some(({ id }) => id === worker))
  return [
    ...left.filter(({ id }) => !ended.has(id)),
    // It was just forked, and a worker that is not ready ends with its master.
    ...forgotten.map(({ worker, ...life }) => ({ ...life, id: worker, state: /** @type {const} */ ('starting'), readyAt: null, intent: null, orphan: /** @type {const} */ ('master-lost'), identity: null }))
  ]
}

/**
 * Keeps what the next master needs up to date, from event to event.
 * @param {object} parts
 * @param {import('../system/data-dir.js').DataDir['memory']} parts.memory
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {import('../cluster/supervisor.js').Supervisor} parts.supervisor
 * @param {Pick<import('../config/settings.js').Settings, 'current' | 'memory'>} parts.settings
 * @param {Pick<import('../releases/registry.js').Releases, 'configuredEntry' | 'lastNumber'>} parts.releases
 * @param {Pick<import('../cluster/hooks.js').Hooks, 'memory'>} parts.hooks
 * @param {Pick<import('../jobs/jobs.js').Jobs, 'memory'>} parts.jobs
 * @param {Software} parts.software
 * @param {number} parts.since
 */
export function rememberFor ({ memory, events, supervisor, settings, releases, hooks, jobs, software: { version, nodeVersion }, since }) {
  const master = identifyProcess(process.pid)
  let written = ''
  const unsubscribe = events.subscribe(() => writeCheckpoint({ handedOver: false }))

  return {
    /** Removes the checkpoint: nothing is left to continue with. */
    forget () {
      unsubscribe()
      memory.clear()
    },

    /** The next one goes on with what is written, as after a death. */
    leave: unsubscribe,

    /** Notes that the next master has the cluster. */
    handOver () {
      unsubscribe()
      writeCheckpoint({ handedOver: true })
    }
  }

  /** @param {{ handedOver: boolean }} how */
  function writeCheckpoint ({ handedOver }) {
    const content = {
      version: VERSION,
      master,
      software: { version, nodeVersion },
      handedOver,
      since,
      configured: { entry: releases.configuredEntry(), workers: settings.current.workers },
      changes: settings.memory(),
      ...supervisor.memory(),
      hooks: hooks.memory(),
      jobs: jobs.memory(),
      // A release whose rollout was refused has used up its number too.
      nextRelease: releases.lastNumber() + 1
    }
    const text = JSON.stringify(content)
    if (text === written) return
    memory.write({ ...content, lastEvent: events.lastId })
    written = text
  }
}

/**
 * Makes what another master has left this one's own, for the time until it has taken it over: if it ends hard too, the
 * loss that the next one records is its own.
 * @param {import('../system/data-dir.js').DataDir['memory']} memory
 */
export function signCheckpoint (memory) {
  const content = memory.read()
  if (content) memory.write({ ...content, master: identifyProcess(process.pid), handedOver: false })
}

/** @param {Software | null} before @param {Software} now @returns {string} what an upgrade has changed */
export function describeChange (before, now) {
  const changes = [['clusterdeck', before?.version, now.version], ['Node', before?.nodeVersion, now.nodeVersion]].filter(([, from, to]) => from !== to)
  if (changes.length === 0) return `clusterdeck ${now.version} on Node ${now.nodeVersion}, unchanged`
  return changes.map(([what, from, to]) => `${what} ${from ?? '(unknown)'} → ${to}`).join(', ')
}

import { checkDatabase } from '../../db/open.js'
import { DeckError } from '../errors.js'
import { tellFailure } from '../keeper/link.js'
import { createDeferred } from '../system/deferred.js'
import { restoreCheckpoint } from './checkpoint.js'

/** @typedef {import('../events/stream.js').NewEvent} NewEvent */

/**
 * The master of an upgrade, as long as another one runs: it starts its workers beside those of the other, on the same
 * sockets, and waits for its turn. What happens meanwhile is told to the other, which has the history.
 * @param {object} parts
 * @param {import('../keeper/link.js').KeeperLink} parts.keeper
 * @param {import('../config/config.js').Config} parts.config
 * @param {import('../system/data-dir.js').DataDir} parts.dataDir
 * @param {Pick<import('../system/data-dir.js').DataDir['memory'], 'read'>} parts.memory
 * @param {import('../releases/registry.js').Releases} parts.releases  that keeps nothing yet
 * @param {(start: any) => import('../cluster/supervisor.js').Supervisor} parts.supervise
 * @returns {Promise<{ supervisor: import('../cluster/supervisor.js').Supervisor, predecessor: import('../keeper/link.js').Predecessor | null, release: import('../lifecycle/state.js').Release, open: ReturnType<typeof createOutbox>['open'] }>}
 *   `predecessor`: how the other master ended, if it did so without handing over
 * @throws {DeckError} upgrade-failed, data-dir-unusable, bad-install, or as a deploy; then its workers are gone, and the other master has been told why
 */
export async function standBy ({ keeper, config, dataDir, memory, releases, supervise }) {
  // Problems have to show now, while the old master still runs.
  checkDatabase(dataDir.historyFile)
  const known = memory.read()
  const { release: before, bootCost, addresses, finished, workers, lastRelease } = restoreCheckpoint(known, config, null)
  const outbox = createOutbox({ keeper, onEvent: watchEvent, workers: () => supervisor.memory().workers })
  let hasTakenOver = false
  let isServing = false
  /** @type {ReturnType<typeof createDeferred<{ predecessor: import('../keeper/link.js').Predecessor | null, reason?: undefined } | { predecessor?: undefined, reason: string }>>} */
  const decided = createDeferred()
  const onLost = () => failUpgrade('the keeper is gone')
  const onTerm = () => failUpgrade('it was told to stop')
  keeper.on('take-over', ({ predecessor }) => {
    hasTakenOver = true
    decided.reach({ predecessor })
  })
  keeper.onLost(onLost)
  process.once('SIGTERM', onTerm)
  // Events that arrive meanwhile are not lost.
  await releases.begin({ lastNumber: lastRelease })
  const release = await releases.resume(before)
  const supervisor = /** @type {import('../cluster/supervisor.js').Supervisor} */ (supervise({
    release,
    bootCost,
    addresses,
    ...(known && { nextWorker: known.firstOfNext ?? known.nextWorker, lastRollout: known.nextRollout - 1 }),
    events: outbox,
    outlives: () => hasTakenOver
  }))
  supervisor.startBlocked.then(({ message }) => failUpgrade(message))
  releases.follow({ events: outbox, supervisor })
  supervisor.start({ workers, finished })

  const { predecessor, reason } = await decided.reached
  keeper.offLost(onLost)
  process.off('SIGTERM', onTerm)
  if (reason !== undefined) {
    supervisor.abandon()
    await supervisor.finished
    throw new DeckError('upgrade-failed', reason)
  }
  return { supervisor, predecessor, release, open: outbox.open }

  /** @param {NewEvent} event */
  function watchEvent ({ type, message, worker }) {
    if (isServing || hasTakenOver) return
    if (type === 'worker.exited' || type === 'worker.draining') return failUpgrade(String(message ?? `worker ${worker} ended`))
    isServing = supervisor.snapshot().state === 'running'
    if (!isServing) return
    outbox.buffer()
    keeper.send({ type: 'serving' })
  }

  /** @param {string} reason */
  function failUpgrade (reason) {
    tellFailure(reason)
    decided.reach({ reason })
  }
}

/**
 * Where events go while the history is another master's.
 * @param {object} parts
 * @param {import('../keeper/link.js').KeeperLink} parts.keeper
 * @param {(event: NewEvent) => void} parts.onEvent
 * @param {() => unknown[]} parts.workers  told with every event, in case that this master comes to nothing
 */
function createOutbox ({ keeper, onEvent, workers }) {
  const relayed = /** @type {any[]} */ ([])
  const buffered = /** @type {any[]} */ ([])
  /** @type {(event: any) => void} */
  let relayEvent = (event) => {
    relayed.push(event)
    keeper.send({ type: 'relay', event, workers: workers() })
  }

  return {
    publish (/** @type {NewEvent} */ event) {
      relayEvent({ at: new Date().toISOString(), ...event })
      onEvent(event)
      return /** @type {any} */ (event)
    },

    /** The old master may close its history at any moment. */
    buffer () { relayEvent = (event) => { buffered.push(event) } },

    /**
     * @param {import('../events/stream.js').EventStream} events this master's own now
     * @param {(event: any) => boolean} isKnown whether the history has it, of those that were told to the other master
     */
    open (events, isKnown) {
      for (const event of [...relayed.filter((one) => !isKnown(one)), ...buffered]) events.publish(event)
      relayEvent = events.publish
    }
  }
}

/**
 * Of what was told to the other master; what names neither worker nor release is told once more rather than never.
 * @param {Pick<import('../../db/history.js').History, 'page'>} history
 * @returns {(event: NewEvent) => boolean}
 */
export function isOnRecord (history) {
  return ({ type, worker, release }) => {
    const about = worker == null ? { release: release ?? undefined } : { worker }
    return Object.values(about)[0] !== undefined && history.page({ type: [type], ...about, limit: 1 }).items.length > 0
  }
}

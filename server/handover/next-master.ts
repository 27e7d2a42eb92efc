import { DeckError } from '../errors.ts'
import type { NewEvent } from '../events/stream.ts'
import type { KeeperLink, Predecessor } from '../keeper/link.ts'
import type { AppLink } from '../keeper/app-links.ts'
import type { Supervisor } from '../cluster/supervisor.ts'
import type { History } from '../../db/history.ts'

export type NextMaster = ReturnType<typeof createNextMaster>

/**
 * The master of an upgrade, as long as another one runs: it starts its workers beside those of the other, on the same
 * sockets, and waits for its turn. What happens meanwhile is told to the other, which has the history.
 */
export function createNextMaster ({ keeper, supervisor }: {
  keeper: Pick<AppLink, 'on' | 'onLost' | 'offLost' | 'send' | 'failUpgrade' | 'failure'>,
  /** of its workers */
  supervisor: () => Pick<Supervisor, 'running' | 'snapshot' | 'memory' | 'startBlocked' | 'abandon' | 'finished'>
}) {
  /** told to the other master, which may have died before it recorded them */
  const relayed: NewEvent[] = []
  /** from the moment on from which the other master may close its history */
  const buffered: NewEvent[] = []
  let isServing = false
  let hasTakenOver = false
  const decided: PromiseWithResolvers<
    { predecessor: Predecessor | null, reason?: undefined } | { predecessor?: undefined, reason: string }
  > = Promise.withResolvers()
  const onLost = () => decided.resolve({ reason: 'the keeper is gone' })
  keeper.on('take-over', ({ predecessor }) => {
    hasTakenOver = true
    decided.resolve({ predecessor })
  })
  // By whatever part of this master: all its apps take over, or none.
  keeper.on('upgrade-failed', ({ reason }) => decided.resolve({ reason }))
  if (keeper.failure !== null) decided.resolve({ reason: keeper.failure })
  keeper.onLost(onLost)

  return {
    /** Whether its workers outlive it: it is the only master. */
    get hasTakenOver () {
      return hasTakenOver
    },

    /** `event`: of this master, until it has the history */
    relay (event: NewEvent) {
      if (isServing) {
        buffered.push(event)
        return
      }
      relayed.push(event)
      // The workers are told along, in case that this master comes to nothing.
      keeper.send({ type: 'relay', event, workers: supervisor().memory().workers })
      if (!hasTakenOver) watchStart(event)
    },

    /**
     * Returns once it is the only master: how the other one ended, if it did so without handing over.
     * @throws {DeckError} upgrade-failed; then its workers are gone, and the other master has been told why
     */
    async whenAlone (): Promise<Predecessor | null> {
      supervisor().startBlocked.then(({ message }) => keeper.failUpgrade(message))
      // By no event, where the program of each slot has come to its end already.
      supervisor().running.then(tellServing)
      const { predecessor, reason } = await decided.promise
      keeper.offLost(onLost)
      if (reason === undefined) return predecessor
      supervisor().abandon()
      await supervisor().finished
      throw new DeckError('upgrade-failed', reason)
    },

    /**
     * @param isKnown whether the history has it, of those that were told to the other master
     * @returns what is not on record yet, oldest first
     */
    unrecorded: (
      isKnown: (event: NewEvent) => boolean
    ): NewEvent[] => [...relayed.filter((event) => !isKnown(event)), ...buffered]
  }

  function watchStart ({ type, message, worker }: NewEvent) {
    if (type === 'worker.exited' || type === 'worker.draining')
      return keeper.failUpgrade(String(message ?? `worker ${worker} ended`))
    if (supervisor().snapshot().state === 'running') tellServing()
  }

  function tellServing () {
    if (isServing || hasTakenOver) return
    isServing = true
    keeper.send({ type: 'serving' })
  }
}

/**
 * Finds out whether the history has an event that was told to the other master. An event that names neither worker nor
 * release is told once more rather than never.
 */
export function isOnRecord (history: Pick<History, 'page'>): (event: NewEvent) => boolean {
  return ({ type, worker, release }) => {
    const about = worker == null ? { release: release ?? undefined } : { worker }
    return Object.values(about)[0] !== undefined && history.page({ type: [type], ...about, limit: 1 }).items.length > 0
  }
}

/** A master that waits for its turn and is told to stop comes to nothing. */
export function failWhenToldToStop (keeper: Pick<KeeperLink, 'role' | 'on' | 'failUpgrade'>) {
  if (keeper.role !== 'next') return
  const onTerm = () => keeper.failUpgrade('it was told to stop')
  process.once('SIGTERM', onTerm)
  keeper.on('take-over', () => process.off('SIGTERM', onTerm))
}

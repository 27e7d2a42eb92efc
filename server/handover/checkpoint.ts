import { readMemory, type DataDir } from '../system/data-dir.ts'
import { identifyProcess, isAlive } from '../system/process-identity.ts'
import type { Jobs, JobsMemory } from '../jobs/jobs.ts'
import type { KeeperLink, Predecessor } from '../keeper/link.ts'
import type { SavedWorker } from '../cluster/adoption.ts'
import type { BootCost } from '../lifecycle/boot-room.ts'
import type { Guard } from '../lifecycle/rollout/guard.ts'
import type { Address } from '../lifecycle/addresses.ts'
import type { Hooks, LeftHook } from '../cluster/hooks.ts'
import type { History } from '../../db/history.ts'
import type { EventStream } from '../events/stream.ts'
import type { Supervisor } from '../cluster/supervisor.ts'
import type { Releases } from '../releases/registry.ts'

/** A master reads no checkpoint of another one. */
export const VERSION = 1

export type Software = { version: string, nodeVersion: string }

/** How a master begins. */
export type Restored = {
  /** the master that did not end as it should; null: there was none */
  lost: Predecessor | null,
  /** it has left its workers to this one on purpose */
  isHandedOver: boolean,
  /** what the master before was */
  before: Software | null,
  /** its workers, whether they still live or not */
  left: SavedWorker[],
  /** the names of those that it had bound */
  sockets: string[],
  /** the event from which on its ids of workers are of one series, null: a new one begins */
  since: number | null,
  /** what ran, where the disk may not have had it yet; as it was read */
  runs: unknown,
  /** what its last worker has needed to get ready */
  bootCost: BootCost | null,
  /** of the release that ran, where it was deployed a short while ago */
  guard: Guard | null,
  /** where its last ready workers have listened, by slot */
  addresses: Record<number, Address[]>,
  /** those that it had not seen ending */
  hooks: LeftHook[],
  /** runs that it had not seen ending, and when it would have run which job next */
  jobs: JobsMemory,
  nextWorker: number,
  /** the first number that a master beside this one gives to its workers */
  firstOfNext: number,
  /** the highest n of `r<n>` that is known to be given out */
  lastRelease: number,
  /** the newest event, or one shortly before it */
  lastEvent: number,
  lastRollout: number
}

/**
 * Continues where the last master stopped. `memory`: what it has left, null if it has ended as it should;
 * `predecessor`: its end, where the keeper saw it.
 */
export async function restoreCheckpoint (memory: unknown, predecessor: Predecessor | null): Promise<Restored> {
  const data = await checkedMemory(memory)
  if (data === null)
    return { addresses: {}, lost: null, isHandedOver: false, before: null, left: [], sockets: [], since: null,
      runs: null, bootCost: null, guard: null, hooks: [], jobs: { runs: [], due: {} }, nextWorker: 1, firstOfNext: 1,
      lastRelease: 0, lastEvent: 0, lastRollout: 0 }
  const { master, handedOver } = data
  return {
    lost: handedOver
      ? null
      : predecessor?.pid === master.pid
      ? predecessor
      : { pid: master.pid, code: null, signal: null },
    isHandedOver: handedOver === true,
    before: data.software ?? null,
    left: data.workers.map((worker) => ({ ...worker, state: worker.state === 'unresponsive' ? 'ready' : worker.state,
      orphan: handedOver ? 'upgrade' : 'master-lost' })
    ) as SavedWorker[],
    sockets: data.sockets,
    since: data.since,
    runs: data.runs ?? null,
    bootCost: data.bootCost ?? null,
    guard: data.guard ?? null,
    addresses: data.addresses,
    hooks: data.hooks,
    jobs: data.jobs,
    nextWorker: data.nextWorker,
    firstOfNext: data.firstOfNext ?? data.nextWorker,
    lastRelease: data.nextRelease - 1,
    lastEvent: data.lastEvent,
    lastRollout: data.nextRollout - 1
  }
}

/** `left`: the workers of a master before. Returns whether some of them live, and so serve. */
export function areServing (left: readonly SavedWorker[]): boolean {
  return left.some(({ identity }) => identity && isAlive(identity))
}

/** `dataDir`: of an app that does not run here. Returns whether workers of a master that has died serve it. */
export function hasLeftWorkers (dataDir: string): boolean {
  const { workers } = Object(readMemory(dataDir))
  return Array.isArray(workers) &&
    workers.some((worker) => Number.isSafeInteger(worker?.identity?.pid) && isAlive(worker.identity))
}

/** A damaged checkpoint is ignored: a wrong number in it could be any process's pid. `memory`: null: there is none. */
async function checkedMemory (memory: unknown) {
  if (memory === null) return null
  // Most starts have none, and need not wait for what checks it.
  const { CHECKPOINT } = await import('./checkpoint-shape.ts')
  return CHECKPOINT.safeParse(memory).data ?? null
}

/**
 * Keeps the checkpoint in a file, which also outlasts the keeper, and with the keeper while the disk is full.
 * `isAway`: the next master may look for the file somewhere else.
 */
export function createCheckpointStore (
  { file, keeper, isAway = false }: { file: DataDir['memory'], keeper: KeeperLink['memory'], isAway?: boolean }
): DataDir['memory'] {
  return { read: () => keeper.read() ?? file.read(), write (content) {
    try {
      file.write(content)
      keeper.write(isAway ? content : null)
    } catch (error) {
      if (!keeper.write(content)) throw error
    }
  }, clear () {
    keeper.write(null)
    file.clear()
  } }
}

/**
 * A master may be killed between an event and the memory of it, so both are asked. `own`: those of this master itself,
 * in an upgrade. Returns those whose end is not on record.
 */
export function reconcileWorkers (left: SavedWorker[], { ended, open }: ReturnType<History['workerLives']>,
  own: { id: number }[]): SavedWorker[]
{
  const forgotten = open.filter(({ worker }) => ![...left, ...own].some(({ id }) => id === worker))
  return [
    ...left.filter(({ id }) => !ended.has(id)),
    // It was just forked, and a worker that is not ready ends with its master.
    ...forgotten.map(({ worker, ...life }) => ({ ...life, id: worker, state: 'starting' as const, readyAt: null,
      intent: null, orphan: 'master-lost' as const, identity: null })
    )
  ]
}

/** Keeps what the next master needs up to date, from event to event. */
export function rememberFor (
  { memory, events, kept, supervisor, releases, hooks, jobs, software: { version, nodeVersion }, since }: {
    memory: DataDir['memory'],
    events: EventStream,
    kept: { unsaved: () => unknown },
    supervisor: Supervisor,
    releases: Pick<Releases, 'lastNumber'>,
    hooks: Pick<Hooks, 'memory'>,
    jobs: Pick<Jobs, 'memory'>,
    software: Software,
    since: number
  }
) {
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

  function writeCheckpoint ({ handedOver }: { handedOver: boolean }) {
    const content = {
      version: VERSION,
      master,
      software: { version, nodeVersion },
      handedOver,
      since,
      ...supervisor.memory(),
      runs: kept.unsaved(),
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
 */
export function signCheckpoint (memory: DataDir['memory']) {
  const content = memory.read()
  if (content) memory.write({ ...content, master: identifyProcess(process.pid), handedOver: false })
}

/** @returns what an upgrade has changed */
export function describeChange (before: Software | null, now: Software): string {
  const changes = [['clusterdeck', before?.version, now.version], ['Node', before?.nodeVersion, now.nodeVersion]]
    .filter(([, from, to]) => from !== to)
  if (changes.length === 0) return `clusterdeck ${now.version} on Node ${now.nodeVersion}, unchanged`
  return changes.map(([what, from, to]) => `${what} ${from ?? '(unknown)'} → ${to}`).join(', ')
}

import { randomUUID } from 'node:crypto'
import { isAnnounced, isAsked } from '../lifecycle/readiness.ts'
import { phaseOf, shownStage } from '../lifecycle/rollout/stages.ts'
import { keepSocketFiles } from '../programs/helper-link.ts'
import { processesOfProgram } from './program-orphan.ts'
import { createSlotPorts } from './slot-ports.ts'
import { createSockets } from './sockets.ts'
import { createSteering, type Living } from './steering.ts'
import { createSticky, type Serving } from './sticky.ts'
import { stageUnixPath } from './unix-staging.ts'
import type { PoolState } from '../lifecycle/state.ts'
import type { WorkerState } from '../lifecycle/worker-state.ts'
import type { SocketQuery } from '../../workers/protocol.ts'
import type { SavedWorker } from './adoption.ts'
import type { Cluster } from './cluster.ts'

export type PoolSockets = ReturnType<typeof createPoolSockets>

const STAYING: readonly (WorkerState | undefined)[] = Object.freeze(['starting', 'standby', 'ready'])

/** The sockets of the cluster, told what there is to know of its workers: who serves, who leaves, and for whom. */
export function createPoolSockets (cluster: Cluster) {
  const { keeper, steering, sticky, tell, events } = cluster
  const { ready } = cluster.state.options
  const id = randomUUID()
  /** Names of the last master's sockets, which its workers may still hold. */
  let before: Set<string> = new Set()
  /** They serve until this master takes over. */
  let others = steering?.others ? steering.others.map(toLiving) : null
  const steered = steering &&
    createSteering({ ...steering, isHeldBack: isAnnounced(ready),
      living: () => [...livingWorkers(cluster, { isAlone: others === null }), ...others ?? []] })
  const sockets = createSockets({ onBindError: isFirstStart, onUnused: tellUnused, keeper,
    stage: steered && stageUnixPath, onPaths: steered ? (files) => keepSocketFiles(id, files) : undefined,
    generations: { of: (worker) => others ? null : generationOf(cluster.state, worker),
      rollout: () => rolloutGeneration(cluster.state),
      stays: (worker) => STAYING.includes(cluster.state.workers[worker]?.state) },
    own: steered ??
      (sticky &&
        createSticky({ ...sticky, isHeldBack: isAsked(ready), size: () => cluster.state.slots.length, serving: () =>
          servingWorkers(cluster.state), tell })) })
  const slotPorts = createSlotPorts(cluster, sockets)
  cluster.on('left', sockets.forget)
  cluster.on('turn', sockets.look)

  return {
    ...sockets,
    connect: (inode: number) => steered?.connect(inode) ?? sockets.connect(inode),
    portOf: slotPorts.of,

    /** `names`: of the sockets that a master before had */
    expect (names: string[]) {
      before = new Set(names)
    },

    /**
     * Without a keeper, orphans may still hold an address while they wait for replacements, which wait for that
     * address. Returns whether it is worth another try.
     */
    makesWay (key: string): boolean {
      if (!before.has(key) || !Object.values(cluster.state.workers).some(({ orphan }) => orphan)) return false
      cluster.receive({ type: 'address-blocked' })
      return true
    },

    bindFailed (query: SocketQuery, errno: number): boolean {
      const endsStart = isFirstStart()
      if (endsStart) cluster.emit('blocked', sockets.explain(query, errno))
      return endsStart
    },

    takeOver () {
      others = null
    },

    close () {
      if (keeper?.leavesSockets) return leave()
      sockets.close()
      slotPorts.close()
    },

    letGo () {
      sockets.letGo()
      slotPorts.letGo()
    },

    leave
  }

  /** Others have these sockets, and they stay open. */
  function leave () {
    sockets.leave()
    slotPorts.leave()
  }

  /** While no worker has ever been ready, giving up loses nothing. */
  function isFirstStart () {
    const { phase, workers } = cluster.state
    return phase === 'starting' && Object.values(workers).every((worker) => worker.readyAt === null)
  }

  function tellUnused (unused: string[]) {
    for (const address of unused) {
      events.publish({ type: 'socket.unused', actor: 'system',
        message: `the app does not listen on ${address}, which the service manager opened for it` })
    }
  }
}

function servingWorkers ({ workers }: PoolState): Serving[] {
  const ready = Object.values(workers).filter(({ state }) => state === 'ready')
  return ready.map(({ id, slot, orphan }) => ({ worker: id, slot: Number(slot), isOrphan: orphan !== null }))
}

/** `isAlone`: no other master has the cluster */
function livingWorkers ({ state: { workers }, handles }: Cluster, { isAlone }: { isAlone: boolean }): Living[] {
  return Object.values(workers).filter(({ state }) => state !== 'exited').map(({ id, state, orphan, intent }) => ({
    worker: id,
    isLost: intent?.cause === 'crash',
    isServing: isAlone && state === 'ready',
    isLeaving: isLeaving(state),
    processes: orphan ? () => processesOfProgram(handles.get(id)?.identity) : null
  }))
}

/** @returns with which others it takes the place of those that serve; null: it takes that of one that has gone */
function generationOf ({ rollout, slots, workers }: PoolState, worker: number): string | null {
  const own = workers[worker]?.slot
  const under = rolloutGeneration({ rollout })
  if (under && slots.some(({ number, candidate }) => number === own && candidate === worker))
    return under.isRevoked ? `${under.generation} back` : under.generation
  return Object.values(workers).some(({ orphan, slot, state }) => orphan && slot === own && state === 'ready')
    ? 'orphans'
    : null
}

function rolloutGeneration ({ rollout }: Pick<PoolState, 'rollout'>) {
  return rollout && !shownStage(rollout).done
    ? { generation: `rollout ${rollout.id}`, isRevoked: phaseOf(rollout) === 'rolling-back',
      isAtOnce: rollout.kind === 'restart' }
    : null
}

/** `worker`: of another master */
function toLiving ({ id, state, identity }: SavedWorker): Living {
  return { worker: id, isServing: state === 'ready', isLeaving: isLeaving(state),
    processes: () => processesOfProgram(identity) }
}

function isLeaving (state: WorkerState) {
  return state === 'draining' || state === 'stopping'
}

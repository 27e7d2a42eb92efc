import type { Command, PlainInput } from '../lifecycle/state.ts'
import type { WorkerHandle } from './worker-handle.ts'
import type { OrphanHandle } from './orphan-handle.ts'
import type { createDeadlines } from './deadlines.ts'
import type { Boots } from './boots.ts'
import type { Keeper, createSockets } from './sockets.ts'
import type { SlotPorts } from './slot-ports.ts'
import type { createWatchdog } from './watchdog.ts'
import type { createJudge } from '../releases/judge.ts'
import type { Standbys } from './standbys.ts'
import type { Vitals } from '../vitals/vitals.ts'

/** by type */
export type Commands = { [Each in Command as Each['type']]: Each }

/** Carries out each command of the lifecycle. */
export function createEffects (
  { handles, deadlines, boots, sockets, slotPorts, watchdog, judge, vitals, keeper, standbys, receive, takeTurn,
    forkWorker, prepareRelease, runHook, runStartHook, endHook, onFinished }: {
      handles: Map<number, WorkerHandle | OrphanHandle>,
      deadlines: ReturnType<typeof createDeadlines>,
      boots: Pick<Boots, 'begin'>,
      sockets: ReturnType<typeof createSockets>,
      slotPorts: SlotPorts,
      watchdog: ReturnType<typeof createWatchdog>,
      judge: Pick<ReturnType<typeof createJudge>, 'begin' | 'judge'>,
      vitals: Pick<Vitals, 'answers'>,
      keeper?: Pick<Keeper, 'send'>,
      receive: (input: PlainInput) => void,
      standbys: Pick<Standbys, 'promote'>,
      /** of a rollout */
      takeTurn: (order: Commands['take-turn']) => void,
      forkWorker: (order: Commands['fork']) => void,
      prepareRelease: (order: Commands['prepare-release']) => void,
      runHook: (order: Commands['run-hook']) => void,
      runStartHook: (order: Commands['run-start-hook']) => void,
      endHook: (rollout: number) => void,
      onFinished: () => void
    }
): { [Type in keyof Commands]: (command: Commands[Type]) => void } {
  return {
    fork: forkWorker,
    promote: ({ worker, slot }) => standbys.promote(worker, slot),
    drain: ({ worker, limits }) => handles.get(worker)?.tell({ type: 'drain', ...limits }),
    'end-connections': (order) => handles.get(order.worker)?.tell(order),
    'count-as-ready': ({ worker }) => handles.get(worker)?.tell({ type: 'count-as-ready' }),
    'write-heap': (order) => handles.get(order.worker)?.tell(order),
    terminate: ({ worker }) => handles.get(worker)?.terminate(),
    kill: ({ worker }) => handles.get(worker)?.kill(),
    'capture-stack': ({ worker }) => {
      watchdog.capture(worker)
    },
    'set-deadline': ({ deadline, id, ms }) => {
      if (deadline === 'ready') boots.begin(id)
      deadlines.set(deadline, id, ms)
    },
    'clear-deadline': ({ deadline, id }) => deadlines.clear(deadline, id),
    'close-sockets': () => {
      sockets.close()
      slotPorts.close()
    },
    'expire-unused-sockets': () => sockets.expireUnused(),
    'close-unused-sockets': () => sockets.closeUnused(),
    'take-turn': takeTurn,
    'prepare-release': prepareRelease,
    'run-hook': runHook,
    'run-start-hook': runStartHook,
    'end-hook': ({ rollout }) => endHook(rollout),
    'begin-judging': () => judge.begin(),
    judge: (order) => receive({ type: 'judged', rollout: order.rollout, verdict: judge.judge(order) }),
    'count-answers': ({ release, from }) =>
      receive({ type: 'answers-counted', release, ...vitals.answers.count(release, from) }),
    // For all apps of the host at once: see handover/joint-upgrade.ts.
    'start-next' () {},
    'cancel-next': ({ reason }) => keeper?.send({ type: 'cancel', reason }),
    finish: () => {
      deadlines.clearAll()
      watchdog.stop()
      sockets.finish()
      onFinished()
    }
  }
}

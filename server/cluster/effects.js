/** @typedef {import('../lifecycle/state.js').Command} Command */
/** @typedef {{ [Each in Command as Each['type']]: Each }} Commands  by type */

/**
 * Carries out each command of the lifecycle.
 * @param {object} parts
 * @param {Map<number, import('./worker-handle.js').WorkerHandle | import('./orphan-handle.js').OrphanHandle>} parts.handles
 * @param {ReturnType<typeof import('./deadlines.js').createDeadlines>} parts.deadlines
 * @param {Pick<import('./boots.js').Boots, 'begin'>} parts.boots
 * @param {ReturnType<typeof import('./sockets.js').createSockets>} parts.sockets
 * @param {import('./slot-ports.js').SlotPorts} parts.slotPorts
 * @param {ReturnType<typeof import('./watchdog.js').createWatchdog>} parts.watchdog
 * @param {Pick<ReturnType<typeof import('../releases/judge.js').createJudge>, 'begin' | 'judge'>} parts.judge
 * @param {Pick<import('./sockets.js').Keeper, 'send'>} [parts.keeper]
 * @param {(input: import('../lifecycle/state.js').PlainInput) => void} parts.receive
 * @param {Pick<import('./standbys.js').Standbys, 'promote'>} parts.standbys
 * @param {(order: Commands['take-turn']) => void} parts.takeTurn  of a rollout
 * @param {(order: Commands['fork']) => void} parts.forkWorker
 * @param {(order: Commands['prepare-release']) => void} parts.prepareRelease
 * @param {(order: Commands['run-hook']) => void} parts.runHook
 * @param {(order: Commands['run-start-hook']) => void} parts.runStartHook
 * @param {(rollout: number) => void} parts.endHook
 * @param {() => void} parts.onFinished
 * @returns {{ [Type in keyof Commands]: (command: Commands[Type]) => void }}
 */
export function createEffects ({
  handles, deadlines, boots, sockets, slotPorts, watchdog, judge, keeper, standbys, receive,
  takeTurn, forkWorker, prepareRelease, runHook, runStartHook, endHook, onFinished
}) {
  return {
    fork: forkWorker,
    promote: ({ worker, slot }) => standbys.promote(worker, slot),
    drain: ({ worker, limits }) => handles.get(worker)?.tell({ type: 'drain', ...limits }),
    'end-connections': (order) => handles.get(order.worker)?.tell(order),
    'count-as-ready': ({ worker }) => handles.get(worker)?.tell({ type: 'count-as-ready' }),
    'write-heap': (order) => handles.get(order.worker)?.tell(order),
    terminate: ({ worker }) => handles.get(worker)?.terminate(),
    kill: ({ worker }) => handles.get(worker)?.kill(),
    'capture-stack': ({ worker }) => { watchdog.capture(worker) },
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
    'start-next': ({ execPath }) => keeper?.send({ type: 'upgrade', execPath }),
    'cancel-next': ({ reason }) => keeper?.send({ type: 'cancel', reason }),
    finish: () => {
      deadlines.clearAll()
      watchdog.stop()
      sockets.finish()
      onFinished()
    }
  }
}

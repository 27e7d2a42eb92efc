import { driftRefusal } from './drift.ts'
import { refuseSteering, STEERING } from './rollout/steering.ts'
import { contradictsOrder } from './rollout/strategy.ts'
import { stopsFirst } from './slot.ts'
import { nameOf } from './worker.ts'
import type { Input, Inputs, PoolState, Refusal } from './state.ts'

/** Why an operator's input is not possible now; null: it is. */
export function refusalOf (state: PoolState, input: Input): Refusal | null {
  if (!OPERATOR_INPUTS.includes(input.type)) return null
  if (state.phase === 'stopping' || state.phase === 'stopped')
    return { code: 'stopping', message: 'the master is stopping' }
  if (input.type === 'stop') return null
  if (state.awaitsHook && !JOINING_INPUTS.includes(input.type)) {
    return { code: 'starting', message: 'hooks.beforeStart is running, and no worker starts before it has passed' }
  }
  if (state.awaitsTurn !== null && !JOINING_INPUTS.includes(input.type))
    return { code: 'starting', message: state.awaitsTurn }
  if (input.type === 'kill-worker')
    return state.workers[input.worker] ? null : { code: 'not-found', message: `no worker ${input.worker} is alive` }
  if (input.type === 'end-connections') return endRefusal(state, input.worker)
  if (isSteering(input)) return refuseSteering(state, input)
  if (state.rollout && !JOINING_INPUTS.includes(input.type)) {
    const { id, kind } = state.rollout
    return { code: 'rollout-running', message: `rollout ${id} (${kind}) is running`, details: { rollout: id } }
  }
  const conflict = orderRefusal(state, input)
  if (conflict) return conflict
  if (state.upgrade) return { code: 'upgrade-running', message: 'an upgrade is running' }
  if (input.type === 'upgrade' && state.phase !== 'running')
    return { code: 'starting', message: 'the workers are still starting' }
  if (input.type === 'restart-worker' && !isServing(state, input.worker)) {
    return { code: 'not-found', message: `worker ${input.worker} has already been replaced, or serves no slot yet` }
  }
  return driftRefusal(state, input)
}

/** Refuses what needs two workers of a slot side by side, where rollout.order forbids that. */
function orderRefusal (state: PoolState, input: Input): Refusal | null {
  if (input.type === 'rollout' && input.kind === 'deploy' && contradictsOrder(state.options.rollout, input.strategy)) {
    return { code: 'not-possible',
      message: 'canary: expected none with rollout.order "stop-first", as a canary serves beside all old workers' }
  }
  if (input.type !== 'upgrade' || !stopsFirst(state)) return null
  const why =
    'an upgrade in place starts the next master\'s workers beside the old ones, and rollout.order is "stop-first"'
  return { code: 'not-possible', message: `${why}: restart the master instead` }
}

function endRefusal ({ workers }: PoolState, id: number): Refusal | null {
  if (!workers[id]) return { code: 'not-found', message: `no worker ${id} is alive` }
  if (workers[id].state === 'draining') return null
  return { code: 'not-possible',
    message: `${nameOf(workers[id])} is ${
      workers[id].state
    }: expected one that was replaced and drains; restart it first` }
}

/** Inputs that are possible during a rollout. */
const JOINING_INPUTS = ['scale', 'configure']
const OPERATOR_INPUTS = [...JOINING_INPUTS, 'rollout', 'restart-worker', 'kill-worker', 'end-connections', 'upgrade',
  'stop', ...Object.keys(STEERING)]

function isServing (state: PoolState, id: number) {
  return state.slots.some(({ serving }) => serving === id)
}

function isSteering (input: Input): input is Inputs['pause'] {
  return input.type in STEERING
}

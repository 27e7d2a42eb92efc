import type { History } from '../../db/history.ts'
import type { EventStream } from '../events/stream.ts'

/** Ends, on record, the rollouts of a master that could not do so itself. */
export function endUnfinished (
  { history, events }: { history: Pick<History, 'unfinishedRollouts'>, events: Pick<EventStream, 'publish'> }
) {
  for (const rollout of history.unfinishedRollouts()) {
    const at = new Date().toISOString()
    const reason = rollout.reason ?? 'its master ended'
    const timeline = rollout.timeline &&
      [...rollout.timeline, { at, type: 'rollout.failed', actor: null, message: reason, passed: null }]
    const hook = rollout.hook?.finishedAt === null ? { ...rollout.hook, state: 'ended', finishedAt: at } : rollout.hook
    const detail = { ...rollout, state: 'failed', done: true, finishedAt: at, reason, ...(hook && { hook }),
      ...(timeline && { timeline }) }
    const { id, to: release, actor } = rollout
    events.publish({ type: 'rollout.failed', cause: 'master-lost', rollout: id, release, actor, message: detail.reason,
      detail })
  }
}

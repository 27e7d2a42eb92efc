import type { AppLink } from '../keeper/app-links.ts'
import type { Supervisor } from '../cluster/supervisor.ts'
import type { EventStream } from '../events/stream.ts'

/**
 * An upgrade, as the master sees it that is to leave: what the next one tells is published here, where the history is,
 * until that one takes over or comes to nothing.
 */
export function followNext (
  { keeper, supervisor, events }: { keeper: Pick<AppLink, 'on' | 'onLost'>, supervisor: Supervisor,
    events: EventStream }
) {
  let left: Parameters<typeof supervisor.nextGone>[0]['left'] = []
  let lastWorker = 0
  keeper.on('relay', (message) => {
    if (message.failing !== undefined) return supervisor.nextFailing(message.failing)
    const { event, workers } = message
    left = workers.map((worker) => ({ ...worker, orphan: 'upgrade' }))
    if (event.type === 'worker.forked') supervisor.nextForks()
    lastWorker = Math.max(lastWorker, event.worker ?? 0)
    events.publish(event)
  })
  keeper.on('upgrade-failed', ({ reason }) => nextGone(reason))
  keeper.onLost(() => nextGone('the keeper is gone'))

  function nextGone (reason: string) {
    supervisor.nextGone({ reason, left, lastWorker })
    left = []
  }
}

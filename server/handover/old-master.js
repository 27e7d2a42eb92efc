/**
 * An upgrade, as the master sees it that is to leave: what the next one tells is published here, where the history is,
 * until that one takes over or comes to nothing.
 * @param {object} parts
 * @param {Pick<import('../keeper/app-links.js').AppLink, 'on' | 'onLost'>} parts.keeper
 * @param {import('../cluster/supervisor.js').Supervisor} parts.supervisor
 * @param {import('../events/stream.js').EventStream} parts.events
 */
export function followNext ({ keeper, supervisor, events }) {
  /** @type {Parameters<typeof supervisor.nextGone>[0]['left']} */
  let left = []
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

  /** @param {string} reason */
  function nextGone (reason) {
    supervisor.nextGone({ reason, left, lastWorker })
    left = []
  }
}

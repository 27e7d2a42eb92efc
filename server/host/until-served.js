/** @typedef {import('../app/app.js').App} App */

/**
 * Waits until no worker of another master is needed any more: each slot has one of this master that serves. One that ends before
 * is enough to let it fail, as in an upgrade: those of the other master are still there.
 * @param {Pick<App, 'events' | 'supervisor' | 'restored'>} app
 * @returns {Promise<string | null>} why it comes to nothing; null: it serves
 */
export function untilServed ({ events, supervisor, restored }) {
  const earlier = new Set(restored.left.map(({ id }) => id))
  return new Promise((resolve) => {
    const leave = events.subscribe(({ type, worker, message }) => {
      if (type === 'worker.exited' && worker != null && !earlier.has(worker)) end(String(message ?? `worker ${worker} ended`))
      else endIfServed()
    })
    endIfServed()

    function endIfServed () {
      if (isServed(supervisor.snapshot())) end(null)
    }

    /** @param {string | null} reason */
    function end (reason) {
      leave()
      resolve(reason)
    }
  })
}

/** @param {ReturnType<App['supervisor']['snapshot']>} snapshot */
function isServed ({ desiredWorkers, workers }) {
  const served = workers.filter(({ state, orphan }) => !orphan && (state === 'ready' || state === 'finished'))
  return new Set(served.map(({ slot }) => slot)).size === desiredWorkers
}

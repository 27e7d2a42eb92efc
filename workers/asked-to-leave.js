import cluster from 'node:cluster'

/**
 * An app of node:cluster ends its worker by itself, after an error or now and then, by closing its channel. It is replaced
 * first instead, and drains then. One that is on its way out, or was never ready, has what Node does.
 * @param {{ ask: () => void, isServing: () => boolean }} parts
 */
export function replaceBeforeLeaving ({ ask, isServing }) {
  const { worker } = cluster
  if (!worker) return
  worker.disconnect = askInstead(worker.disconnect, worker)
  worker.kill = askInstead(worker.kill, worker)
  worker.destroy = askInstead(worker.destroy, worker)
  process.disconnect = askInstead(process.disconnect, undefined)

  /**
   * @template {unknown[]} Arguments @template Answer @template Instead
   * @param {(...args: Arguments) => Answer} leave @param {Instead} answer
   * @returns {(...args: Arguments) => Answer | Instead}
   */
  function askInstead (leave, answer) {
    return /** @this {unknown} */ function (...args) {
      if (!process.connected || !isServing() || !isCalledByApp(new Error())) return leave.apply(this, args)
      ask()
      return answer
    }
  }
}

/** Node closes the channel by the same call where its other end is gone. @param {Error} call */
function isCalledByApp ({ stack = '' }) {
  const [, , caller = ''] = stack.split('\n')
  return caller !== '' && !caller.includes('node:internal/child_process')
}

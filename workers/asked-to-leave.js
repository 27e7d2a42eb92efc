import cluster from 'node:cluster'

/**
 * An app of node:cluster ends its worker by itself, after an error or now and then, by closing its channel. It is replaced
 * first instead, and drains then. One that is on its way out, or was never ready, has what Node does.
 * @param {{ ask: () => void, isServing: () => boolean }} parts
 */
export function replaceBeforeLeaving ({ ask, isServing }) {
  const worker = /** @type {any} */ (cluster.worker)
  for (const [owner, names] of /** @type {[any, string[]][]} */ ([[worker, ['disconnect', 'kill', 'destroy']], [process, ['disconnect']]])) {
    for (const name of names) owner[name] = askInstead(owner[name])
  }

  function askInstead (/** @type {(...args: any[]) => any} */ leave) {
    return /** @this {any} @param {any[]} args */ function (...args) {
      if (!process.connected || !isServing() || !isCalledByApp(new Error())) return leave.apply(this, args)
      ask()
      return this === worker ? worker : undefined
    }
  }
}

/** Node closes the channel by the same call where its other end is gone. @param {Error} call */
function isCalledByApp ({ stack = '' }) {
  const [, , caller = ''] = stack.split('\n')
  return caller !== '' && !caller.includes('node:internal/child_process')
}

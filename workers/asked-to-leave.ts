import cluster from 'node:cluster'

/**
 * An app of node:cluster ends its worker by itself, after an error or now and then, by closing its channel. It is
 * replaced first instead, and drains then. One that is on its way out, or was never ready, has what Node does.
 * `lose`: the other end of the channel is gone.
 */
export function replaceBeforeLeaving (
  { ask, isServing, lose }: { ask: () => void, isServing: () => boolean, lose: (disconnect: () => void) => void }
) {
  const { worker } = cluster
  if (!worker) return
  worker.disconnect = askInstead(worker.disconnect, worker)
  worker.kill = askInstead(worker.kill, worker)
  worker.destroy = askInstead(worker.destroy, worker)
  const { disconnect } = process
  process.disconnect = askInstead(disconnect, undefined, () => lose(() => disconnect.call(process)))

  function askInstead<Arguments extends unknown[], Answer, Instead> (leave: (...args: Arguments) => Answer,
    answer: Instead, leaveByNode: (...args: Arguments) => Answer = leave): (...args: Arguments) => Answer | Instead
  {
    return function (this: unknown, ...args) {
      const isApp = isCalledByApp(new Error())
      if (!process.connected || !isServing() || !isApp) return (isApp ? leave : leaveByNode).apply(this, args)
      ask()
      return answer
    }
  }
}

/** Node closes the channel by the same call where its other end is gone. */
function isCalledByApp ({ stack = '' }: Error) {
  const [, , caller = ''] = stack.split('\n')
  return caller !== '' && !caller.includes('node:internal/child_process')
}

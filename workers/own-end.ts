import cluster from 'node:cluster'
import { setImmediate } from 'node:timers'

/**
 * By these listeners of node:cluster each worker is kept running: Node holds the channel while anybody listens there.
 */
const LISTENED = ['message', 'disconnect']

/**
 * Lets an app that has nothing more to do come to its end, as it would without a master: a job, a script. It goes on
 * while it waits for the master: for its socket, for its slot, for its successor, or for the end of its drain.
 * @returns `hold`: keeps the process running until the function that it returns is called
 */
export function endWhenDone (): { hold: () => () => void } {
  const { channel } = process
  // A version of Node that has no such count keeps the process running, as it always did.
  for (const name of LISTENED)
    for (let count = process.listenerCount(name); count > 0; count--) channel?.unrefCounted?.()
  if (channel) countFromHereOn(channel)
  cluster.worker?.on('newListener', (name) => {
    if (name === 'message') hold()
  })
  const ask = cluster._getServer
  cluster._getServer = function (server, order, callback) {
    const release = hold()
    ask.call(this, server, order, (errno, handle) => {
      callback(errno, handle)
      setImmediate(release)
    })
  }
  return { hold }

  function hold () {
    channel?.refCounted?.()
    return () => channel?.unrefCounted?.()
  }
}

/**
 * Node takes one off its count for each listener that is removed, also for those of node:cluster, which are counted no
 * more. An app that removes them all would bring the count below zero, and end while it waits for its socket.
 */
function countFromHereOn (channel: NonNullable<typeof process.channel>) {
  const { refCounted, unrefCounted } = channel
  let count = 0
  channel.refCounted = () => {
    count++
    refCounted?.call(channel)
  }
  channel.unrefCounted = () => {
    if (count === 0) return
    count--
    unrefCounted?.call(channel)
  }
}

/**
 * An app of node:cluster ends its worker by itself, after an error or now and then, by closing its channel. It is
 * replaced first instead, and drains then. In a worker that is on its way out, or was never ready, these calls do what
 * Node does.
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

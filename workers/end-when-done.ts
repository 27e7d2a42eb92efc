import cluster from 'node:cluster'
import { setImmediate } from 'node:timers'

/**
 * By these listeners of node:cluster each worker is kept running: Node holds the channel while anybody listens there.
 */
const LISTENED = ['message', 'disconnect']

/**
 * Lets an app that has nothing more to do come to its end, as it would without a master: a job, a script. It goes on
 * while it waits for the master: for its socket, for its slot, for its successor, or for the end of its drain.
 * @returns keeps it running until what this has returned is called
 */
export function endWhenDone (): { hold: () => () => void } {
  const { channel } = process
  // A version of Node that has no such count keeps the process running, as it always did.
  for (const name of LISTENED)
    for (let count = process.listenerCount(name); count > 0; count--) channel?.unrefCounted?.()
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

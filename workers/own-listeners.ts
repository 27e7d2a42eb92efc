/** By these a worker hears its master and reports its end, and Node knows that somebody listens for a signal. */
const OWN: (string | symbol)[] = ['internalMessage', 'disconnect', 'uncaughtExceptionMonitor', 'newListener',
  'removeListener']

/**
 * An app may remove every listener of the process, as some test tools and shutdown helpers do: it means its own. Call
 * this before the app runs, when all listeners that are to stay have been added.
 */
export function keepOwnListeners () {
  const { removeAllListeners } = process
  const own = new Set(OWN.flatMap((name) => process.rawListeners(name)))

  process.removeAllListeners = function (name) {
    for (const each of name === undefined ? this.eventNames() : [name]) {
      if (!OWN.includes(each)) removeAllListeners.call(this, each)
      else for (const listener of this.rawListeners(each))
          if (!own.has(listener)) Reflect.apply(this.removeListener, this, [each, listener])
    }
    return this
  }
}

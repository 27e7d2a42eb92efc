/** What a worker hears its master by, and tells it of its end; and by which Node knows that a signal is listened for. */
const OWN = new Set(['internalMessage', 'disconnect', 'uncaughtExceptionMonitor', 'newListener', 'removeListener'])

/** An app may remove every listener of the process, as some test tools and shutdown helpers do: it means its own. */
export function keepOwnListeners () {
  const { removeAllListeners } = process
  process.removeAllListeners = function (/** @type {any[]} */ ...names) {
    if (names.length > 0 && names[0] !== undefined) return OWN.has(String(names[0])) ? this : /** @type {any} */ (removeAllListeners).apply(this, names)
    for (const name of this.eventNames()) if (!OWN.has(String(name))) removeAllListeners.call(this, name)
    return this
  }
}

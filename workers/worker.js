import { openChannel } from './channel.js'
import { recordCrashes } from './crash.js'
import { createDrain } from './drain.js'
import { deferInterrupt } from './interrupt.js'
import { shareSockets, watchServers } from './listen.js'
import { sendVitals } from './vitals.js'

/**
 * Everything that runs inside a worker beside the app.
 * @param {import('./protocol.js').BootSettings} settings
 */
export function startWorker ({ dispatch, readySignal, crashFile }) {
  const channel = openChannel()
  const drain = createDrain({ onDrained: () => channel.send({ type: 'drained' }) })

  recordCrashes(crashFile)
  deferInterrupt(drain)
  watchServers({ onListen: drain.watch, onListening: announce })
  if (dispatch === 'shared') shareSockets({ channel, isDraining: drain.isDraining })
  channel.on('drain', drain.start)
  channel.send({ type: 'hello' })
  sendVitals(channel)
  // The main module of a CommonJS app has run by the first turn after the preload.
  if (readySignal === 'online') setImmediate(() => channel.send({ type: 'ready' }))

  let isReady = false
  function announce (/** @type {string} */ address) {
    channel.send({ type: 'listening', address })
    if (isReady || readySignal !== 'listening') return
    isReady = true
    // One turn later, so that an app that listens on several addresses at once has asked for all of them.
    setImmediate(() => channel.send({ type: 'ready' }))
  }
}

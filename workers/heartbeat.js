import { subscribe } from 'node:diagnostics_channel'
import inspector from 'node:inspector'
import { setInterval } from 'node:timers'
import { UNCOUNTED } from './requests.js'

const LOOK_EVERY_MS = 1000

/**
 * What the master has to know to judge this worker's silence, and when it has answered enough.
 * @param {import('./channel.js').Channel} channel
 * @param {{ maxRequests: number }} limits 0: none
 */
export function tellState (channel, { maxRequests }) {
  let isInspected = false
  // A worker that hangs is asked by SIGUSR1 where; on the port of always, all but the first would find it taken.
  if (!/--inspect/.test(`${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`)) process.debugPort = 0
  look()
  setInterval(look, LOOK_EVERY_MS).unref()
  channel.on('close-inspector', closeInspector)
  if (maxRequests > 0) countRequests(maxRequests, () => channel.send({ type: 'max-requests' }))

  function look () {
    const isOpen = inspector.url() !== undefined
    if (isOpen === isInspected) return
    isInspected = isOpen
    channel.send({ type: 'inspected', isInspected })
  }

  // The master has opened it while this process hung, and nobody else is to find it.
  function closeInspector () {
    if (inspector.url() !== undefined) inspector.close()
    look()
  }
}

/** @param {number} limit @param {() => void} onReached */
function countRequests (limit, onReached) {
  let count = 0
  subscribe('http.server.request.start', (/** @type {any} */ { socket }) => {
    if (socket[UNCOUNTED]) return
    if (++count === limit) onReached()
  })
}

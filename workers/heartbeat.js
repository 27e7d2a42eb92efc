import { subscribe } from 'node:diagnostics_channel'
import { setInterval } from 'node:timers'
import { closeInspector, isInspected, letInspectorTakeAnyPort } from './inspector.js'
import { UNCOUNTED } from './requests.js'

const LOOK_EVERY_MS = 1000

/**
 * What the master has to know to judge this worker's silence, and when it has answered enough.
 * @param {import('./channel.js').Channel} channel
 * @param {{ maxRequests: number }} limits 0: none
 */
export function tellState (channel, { maxRequests }) {
  let wasInspected = false
  letInspectorTakeAnyPort()
  look()
  setInterval(look, LOOK_EVERY_MS).unref()
  channel.on('close-inspector', () => {
    closeInspector()
    look()
  })
  if (maxRequests > 0) countRequests(maxRequests, () => channel.send({ type: 'max-requests' }))

  function look () {
    if (isInspected() === wasInspected) return
    wasInspected = !wasInspected
    channel.send({ type: 'inspected', isInspected: wasInspected })
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

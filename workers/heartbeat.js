import { setInterval } from 'node:timers'
import { closeInspector, isInspected, letInspectorTakeAnyPort } from './inspector.js'

const LOOK_EVERY_MS = 1000

/**
 * Tells the master what it needs to judge this worker's silence.
 * @param {import('./channel.js').Channel} channel
 */
export function tellState (channel) {
  let wasInspected = false
  letInspectorTakeAnyPort()
  tellInspection()
  setInterval(tellInspection, LOOK_EVERY_MS).unref()
  channel.on('close-inspector', () => {
    closeInspector()
    tellInspection()
  })

  function tellInspection () {
    if (isInspected() === wasInspected) return
    wasInspected = !wasInspected
    channel.send({ type: 'inspected', isInspected: wasInspected })
  }
}

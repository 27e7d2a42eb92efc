import { closeInspector, isInspected, letInspectorTakeAnyPort } from './inspector.js'
import { lookAtTurnOfSecond } from './look-together.js'

/**
 * Tells the master what it needs to judge this worker's silence.
 * @param {import('./channel.js').Channel} channel
 */
export function tellState (channel) {
  let wasInspected = false
  letInspectorTakeAnyPort()
  tellInspection()
  lookAtTurnOfSecond(tellInspection)
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

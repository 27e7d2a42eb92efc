import { closeInspector, isInspected, letInspectorTakeAnyPort } from './inspector.ts'
import { lookAtTurnOfSecond } from './look-together.ts'
import type { Channel } from './channel.ts'

/** Tells the master what it needs to judge this worker's silence. */
export function tellState (channel: Channel) {
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

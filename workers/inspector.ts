import inspector from 'node:inspector'
import { lookAtTurnOfSecond } from './look-together.ts'
import type { Channel } from './channel.ts'

/**
 * The master sends SIGUSR1 to a process that hangs, which opens its inspector. On the default port only the first
 * process could do that.
 */
export function letInspectorTakeAnyPort () {
  if (!/--inspect/.test(`${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`)) process.debugPort = 0
}

/** Tells whether a debugger is attached, or can be */
export function isInspected (): boolean {
  return inspector.url() !== undefined
}

/** Closes an inspector that was opened while this process hung, so that nobody else finds it. */
export function closeInspector () {
  if (isInspected()) inspector.close()
}

/** Tells the master whether a debugger holds this worker, whose silence means nothing then. */
export function tellInspection (channel: Channel) {
  let wasInspected = false
  letInspectorTakeAnyPort()
  look()
  lookAtTurnOfSecond(look)
  channel.on('close-inspector', () => {
    closeInspector()
    look()
  })

  function look () {
    if (isInspected() === wasInspected) return
    wasInspected = !wasInspected
    channel.send({ type: 'inspected', isInspected: wasInspected })
  }
}

import { channel } from 'node:diagnostics_channel'
import type { DrainLimits } from './protocol.ts'

/** What a library subscribes to; the app hears the same as a message. */
const draining = channel('clusterdeck:draining')

/**
 * Tells the app that this worker drains: it has the time of its drain to stop timers and consumers, and to close what
 * it has.
 * @param onProblem a listener of the app has thrown, which must not end the requests of a worker
 */
export function tellDraining ({ deadlineMs, longLivedMs, isLast }: DrainLimits, onProblem: (problem: string) => void) {
  const data = { deadlineMs, longLivedMs, isLast }
  try {
    // Whoever subscribes there has their errors thrown by Node, in a turn of its own.
    draining.publish(data)
    process.emit('message', { type: 'draining', from: 'master', data }, undefined)
  } catch (error) {
    onProblem(`a listener of the app for messages has thrown at "draining": ${String(error).slice(0, 500)}`)
  }
}

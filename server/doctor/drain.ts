import { finding, type Check } from './finding.ts'
import { optionLine } from './option-line.ts'

/** The longest time that a timer can wait. */
const LONGEST_MS = 2 ** 31 - 1

/** whether a worker that is replaced can finish what it has */
export const checkDrain: Check = (facts) => {
  const { running, config: { drain } } = facts
  if (!running) return []
  const { cutOff, longestMs } = running
  if (!cutOff && longestMs !== null && longestMs > drain.deadlineMs) {
    return [
      finding('drain', 'warning',
        `A request has taken ${(longestMs / 1000).toFixed(1)} s of late, and a worker that is replaced has ${
          drain.deadlineMs / 1000
        } s`, 'A deploy cuts off a request that takes longer than that.', [
        optionLine(facts, { 'drain.deadlineMs': Math.min(LONGEST_MS, Math.ceil(longestMs / 1000) * 2000) })
      ])
    ]
  }
  if (!cutOff) return [finding('drain', 'ok', 'No worker that was replaced has cut off a request')]
  const { at, requests, count } = cutOff
  const seconds = drain.deadlineMs / 1000
  return [
    finding('drain', 'error',
      `${count} replaced ${
        count === 1 ? 'worker has' : 'workers have'
      } cut off requests, the last one ${requests} at ${at}`,
      `They took longer than the ${seconds} s that a worker has to finish them, so their clients got no answer.`, [
      optionLine(facts, { 'drain.deadlineMs': Math.min(LONGEST_MS, Math.max(1000, drain.deadlineMs) * 4) })
    ])
  ]
}

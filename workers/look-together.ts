import { clearTimeout, setTimeout } from 'node:timers'

const SECOND_MS = 1000

// To be woken is most of what a process costs that rests. So those who look again and again do it at the same moments.

/**
 * @param look once a second, at the turn of the clock's second
 * @returns ends it
 */
export function lookAtTurnOfSecond (look: () => void): () => void {
  return lookTogether(look, SECOND_MS, 0)
}

/**
 * Masters look at this moment, as they also take up then what their workers have told at the turn of the second.
 * @returns ends it
 */
export function lookInMiddleOfSecond (look: () => void, everyMs: number): () => void {
  return lookTogether(look, everyMs, SECOND_MS / 2)
}

function lookTogether (look: () => void, everyMs: number, afterMs: number): () => void {
  let timer = setTimeout(lookAgain, untilNext()).unref()
  return () => clearTimeout(timer)

  function untilNext () {
    return everyMs - (Date.now() - afterMs) % everyMs
  }

  function lookAgain () {
    const ms = untilNext()
    // A timer may fire a moment before its time, and would fire twice then.
    timer = setTimeout(lookAgain, ms < everyMs / 2 ? ms + everyMs : ms).unref()
    look()
  }
}

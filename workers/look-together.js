import { clearTimeout, setTimeout } from 'node:timers'

const SECOND_MS = 1000

// To be woken is most of what a process costs that rests. So those who look again and again do it at the same moments.

/**
 * @param {() => void} look once a second, at the turn of the clock's second
 * @returns {() => void} ends it
 */
export function lookAtTurnOfSecond (look) {
  return lookTogether(look, SECOND_MS, 0)
}

/**
 * Masters look at this moment, as they also take up then what their workers have told at the turn of the second.
 * @param {() => void} look @param {number} everyMs
 * @returns {() => void} ends it
 */
export function lookInMiddleOfSecond (look, everyMs) {
  return lookTogether(look, everyMs, SECOND_MS / 2)
}

/** @param {() => void} look @param {number} everyMs @param {number} afterMs @returns {() => void} */
function lookTogether (look, everyMs, afterMs) {
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

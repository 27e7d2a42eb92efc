const MIDDLE_MS = 500

/**
 * Calls again and again, and at the same moments for all that do: those who look once a second look in the middle of a
 * second by the clock. To be woken is most of what a process costs that rests, so one waking serves all of them.
 * @param {() => void} look
 * @param {number} everyMs
 * @returns {() => void} ends it
 */
export function lookTogether (look, everyMs) {
  let timer = schedule()
  return () => clearTimeout(timer)

  function schedule () {
    const ms = everyMs - (Date.now() + MIDDLE_MS) % everyMs
    // A timer may fire a moment before its time, and would fire twice then.
    return setTimeout(lookAgain, ms < everyMs / 2 ? ms + everyMs : ms).unref()
  }

  function lookAgain () {
    timer = schedule()
    look()
  }
}

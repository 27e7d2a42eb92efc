/**
 * One input after the other: what comes while one is being worked on waits.
 * @template {{ type: string, worker?: number }} I
 * @template R
 * @param {{ work: (input: I) => R, onFault: (fault: { worker: number | null, message: string, detail: { stack: string } }) => void }} parts
 *   `onFault`: of an input that nobody waits for; the others go on
 */
export function createInbox ({ work, onFault }) {
  /** @type {I[]} */
  const waiting = []
  let isWorking = false

  return {
    /** @param {I} input what has happened outside */
    receive (input) {
      waiting.push(input)
      if (!isWorking) takeAll()
    },

    /**
     * @param {I} input what somebody wants an answer to, at once
     * @returns {R}
     */
    ask (input) {
      const answer = handleInput(input)
      takeAll()
      return answer
    }
  }

  function takeAll () {
    for (let input; (input = waiting.shift());) {
      try {
        handleInput(input)
      } catch (/** @type {any} */ error) {
        onFault({ worker: input.worker ?? null, message: `${input.type}: ${error.message}`, detail: { stack: error.stack } })
      }
    }
  }

  /** @param {I} input */
  function handleInput (input) {
    isWorking = true
    try {
      return work(input)
    } finally {
      isWorking = false
    }
  }
}

import { toError } from '../errors.js'

/**
 * Works on one input after the other; an input that arrives meanwhile waits.
 * @template {{ type: string, worker?: number }} I
 * @template R
 * @param {{ work: (input: I) => R, onFault: (fault: { worker: number | null, message: string, detail: { stack: string | undefined } }) => void }} parts
 *   `onFault`: an input failed that nobody waits for; the others go on
 */
export function createInbox ({ work, onFault }) {
  /** @type {I[]} */
  const waiting = []
  let isWorking = false

  return {
    /** @param {I} input something that has happened */
    receive (input) {
      waiting.push(input)
      if (!isWorking) takeAll()
    },

    /**
     * @param {I} input that needs an answer at once
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
      } catch (error) {
        const { message, stack } = toError(error)
        onFault({ worker: input.worker ?? null, message: `${input.type}: ${message}`, detail: { stack } })
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

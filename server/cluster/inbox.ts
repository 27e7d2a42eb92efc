import { toError } from '../errors.ts'

/**
 * Works on one input after the other; an input that arrives meanwhile waits.
 * @param parts `onFault`: an input failed that nobody waits for; the others go on
 */
export function createInbox<I extends { type: string, worker?: number }, R> (
  { work, onFault }: { work: (input: I) => R,
    onFault: (fault: { worker: number | null, message: string, detail: { stack: string | undefined } }) => void }
) {
  const waiting: I[] = []
  let isWorking = false

  return {
    /** `input`: something that has happened */
    receive (input: I) {
      waiting.push(input)
      if (!isWorking) takeAll()
    },

    /** `input`: that needs an answer at once */
    ask (input: I): R {
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

  function handleInput (input: I) {
    isWorking = true
    try {
      return work(input)
    } finally {
      isWorking = false
    }
  }
}

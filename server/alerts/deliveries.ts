import type { Message, Outcome } from './sender.ts'

/** `at`: when it was tried first; `attempt`: how many tries were begun */
export type Delivery = { id: number, at: string, event: Message['event'], attempt: number } & Outcome

const MAX_KEPT = 20

const UNTRIED: Readonly<Outcome & { attempt: number }> = Object.freeze({ attempt: 0, state: 'pending', status: null,
  durationMs: null, error: null, nextAttemptAt: null })

/**
 * Keeps the outcomes of the last messages of one alert, and all that are still pending. `time`: wall, ms.
 */
export function createDeliveries ({ time }: { time: () => number }) {
  /** oldest first */
  const kept: { message: Message, delivery: Delivery }[] = []
  let lastId = 0

  return {
    /** @returns newest first */
    list: (): Delivery[] => kept.map(({ delivery }) => delivery).reverse(),

    find: (id: number) => kept.find(({ delivery }) => delivery.id === id) ?? null,

    /** Lists a message that waits for its first try. */
    open: (message: Message): Delivery => changeDelivery(message, { state: 'pending' }),

    begin (message: Message) {
      const { attempt } = entryOf(message).delivery
      changeDelivery(message, { state: 'pending', attempt: attempt + 1, nextAttemptAt: null })
    },

    end: (message: Message, outcome: Outcome): Delivery => changeDelivery(message, outcome)
  }

  function changeDelivery (message: Message, changes: Partial<Delivery>) {
    const entry = entryOf(message)
    entry.delivery = { ...entry.delivery, ...changes }
    return entry.delivery
  }

  function entryOf (message: Message) {
    const known = kept.find((entry) => entry.message === message)
    if (known) return known
    const entry = { message,
      delivery: { id: ++lastId, at: new Date(time()).toISOString(), event: message.event, ...UNTRIED } }
    kept.push(entry)
    forgetOldest()
    return entry
  }

  function forgetOldest () {
    const oldest = kept.findIndex(({ delivery }) => delivery.state !== 'pending')
    if (kept.length > MAX_KEPT && oldest !== -1) kept.splice(oldest, 1)
  }
}

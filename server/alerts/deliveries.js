/**
 * @typedef {import('./sender.js').Message} Message
 * @typedef {import('./sender.js').Outcome} Outcome
 * @typedef {{ id: number, at: string, event: { id: number, type: string }, attempt: number } & Outcome} Delivery
 *   `at`: when it was tried first; `attempt`: how many tries were begun
 */

const MAX_KEPT = 20

/** @type {Readonly<Outcome & { attempt: number }>} */
const UNTRIED = Object.freeze({ attempt: 0, state: 'pending', status: null, durationMs: null, error: null, nextAttemptAt: null })

/**
 * Keeps the outcomes of the last messages of one alert, and all that are still pending.
 * @param {{ time: () => number }} options `time`: wall, ms
 */
export function createDeliveries ({ time }) {
  /** @type {{ message: Message, delivery: Delivery }[]} oldest first */
  const kept = []
  let lastId = 0

  return {
    /** @returns {Delivery[]} newest first */
    list: () => kept.map(({ delivery }) => delivery).reverse(),

    /** @param {number} id */
    find: (id) => kept.find(({ delivery }) => delivery.id === id) ?? null,

    /** Lists a message that waits for its first try. @param {Message} message @returns {Delivery} */
    open: (message) => changeDelivery(message, { state: 'pending' }),

    /** @param {Message} message */
    begin (message) {
      const { attempt } = entryOf(message).delivery
      changeDelivery(message, { state: 'pending', attempt: attempt + 1, nextAttemptAt: null })
    },

    /** @param {Message} message @param {Outcome} outcome @returns {Delivery} */
    end: (message, outcome) => changeDelivery(message, outcome)
  }

  /** @param {Message} message @param {Partial<Delivery>} changes */
  function changeDelivery (message, changes) {
    const entry = entryOf(message)
    entry.delivery = { ...entry.delivery, ...changes }
    return entry.delivery
  }

  /** @param {Message} message */
  function entryOf (message) {
    const known = kept.find((entry) => entry.message === message)
    if (known) return known
    const entry = { message, delivery: { id: ++lastId, at: new Date(time()).toISOString(), event: message.event, ...UNTRIED } }
    kept.push(entry)
    forgetOldest()
    return entry
  }

  function forgetOldest () {
    const oldest = kept.findIndex(({ delivery }) => delivery.state !== 'pending')
    if (kept.length > MAX_KEPT && oldest !== -1) kept.splice(oldest, 1)
  }
}

/**
 * Follows the output on all hosts of the fleet, which do not stream to each other: it asks again and again for what came since.
 * The clocks of the hosts differ, so it asks for a little more, and leaves out what it has had.
 * @typedef {import('./log-tail.js').Entry & { member: string }} FleetEntry
 * @typedef {{ items: FleetEntry[], silent: string[], at: number }} Answer `at`: when this host has answered, by its clock, in ms since the epoch
 */

const EVERY_MS = 3000
const OVERLAP_MS = 5000

/**
 * @param {object} parts
 * @param {string} parts.url  of the API, to which a parameter can be added
 * @param {string} parts.since  when the newest line was written that is shown
 * @param {string[]} parts.seen  the lines that are shown, see `nameOf`
 * @param {(entries: (FleetEntry | { note: string })[]) => void} parts.onEntries
 * @param {(state: import('./log-tail.js').State) => void} parts.onState
 * @param {(url: string) => Promise<Answer>} [parts.ask]
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 */
export function createFleetTail ({ url, since, seen, onEntries, onState, ask = askJson, timers = globalThis }) {
  let known = new Set(seen)
  let silent = /** @type {string[] | null} */ (null)
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  let turn = 0

  return {
    start () {
      if (timer === undefined) askAgain(++turn)
    },

    stop () {
      turn++
      timers.clearTimeout(timer)
      timer = undefined
    }
  }

  /** @param {number} own  the turn that asks: it ends as soon as there is a later one */
  async function askAgain (own) {
    timer = timers.setTimeout(() => askAgain(own), EVERY_MS)
    try {
      const answer = await ask(`${url}since=${new Date(Date.parse(since) - OVERLAP_MS).toISOString()}`)
      if (own !== turn) return
      takeAnswer(answer)
      onState('live')
    } catch {
      if (own === turn) onState('lost')
    }
  }

  /** @param {Answer} answer */
  function takeAnswer ({ items, silent: now, at }) {
    const fresh = items.filter((item) => !known.has(nameOf(item)))
    const missing = silent === null ? [] : now.filter((member) => !silent?.includes(member))
    silent = now
    if (items.length > 0) known = new Set(items.map(nameOf))
    // A host whose clock is ahead must not hide what the others write until then.
    const latest = new Date(at).toISOString()
    for (const { arrivedAt } of items) if (arrivedAt && arrivedAt > since) since = arrivedAt < latest ? arrivedAt : latest
    onEntries([...fresh, ...missing.map((member) => ({ note: `${member} does not answer, its lines are left out` }))])
  }
}

/** @param {FleetEntry} entry @returns {string} the same as in the link of a line */
function nameOf ({ member, place }) {
  return `${member}:${place}`
}

/** @param {string} url @returns {Promise<Answer>} */
async function askJson (url) {
  const response = await fetch(url, { headers: { Accept: 'application/json' } })
  if (!response.ok) throw new Error(`the fleet answered with ${response.status}`)
  const { items, silent } = /** @type {Answer} */ (await response.json())
  return { items, silent, at: Date.parse(String(response.headers.get('date'))) || Date.now() }
}

import { summaryOf } from '../api/fleet.js'
import { SPARK_BOX } from './sparkline.js'

/**
 * What pages about the fleet remember from look to look: the requests of each member over the last minutes, when a silent one
 * was last heard, and which rollouts were before the present one.
 * @typedef {import('../fleet/fleet.js').Fleet} Fleet
 * @typedef {import('../api/fleet.js').Summary} Summary
 * @typedef {import('../fleet/presence.js').Member} Member
 * @typedef {ReturnType<typeof createObservations>} Observations
 */

/** Of each point of a line. */
const STEP_MS = 10_000
const STEPS = 30
const PADDING = 3
/** Ages are told to the millisecond, and by another clock. */
const SAME_WITHIN_MS = 2000
/** All of them come over the network. */
const PAST_AGAIN_MS = 60_000

/** @type {WeakMap<Fleet, Observations>} for as long as the fleet is there */
const MEMORIES = new WeakMap()

/** @param {Fleet} fleet @returns {Observations} */
export function observationsOf (fleet) {
  const memory = MEMORIES.get(fleet) ?? createObservations(fleet)
  MEMORIES.set(fleet, memory)
  return memory
}

/** @param {Pick<Fleet, 'past'>} fleet */
export function createObservations (fleet) {
  /** @type {Map<string, { heardAt: number, rates: Map<number, number> }>} `heardAt`: wall time, ms; `rates`: by the number of the step */
  const known = new Map()
  let step = 0
  /** @type {{ id: number | null, at: number, coming: Promise<Summary[]>, rollouts: Summary[] } | null} */
  let past = null

  return {
    /** @param {Member[]} members as they are @param {number} now wall time, ms */
    note (members, now) {
      step = Math.floor(now / STEP_MS)
      const names = new Set(members.map(({ member }) => member))
      for (const name of known.keys()) if (!names.has(name)) known.delete(name)
      for (const { member, ageMs, isSilent, vitals: { requestsPerSecond } } of members) {
        const heardAt = now - ageMs
        const before = known.get(member) ?? { heardAt, rates: new Map() }
        if (Math.abs(before.heardAt - heardAt) > SAME_WITHIN_MS) before.heardAt = heardAt
        if (!isSilent && requestsPerSecond !== null) before.rates.set(step, requestsPerSecond)
        for (const at of before.rates.keys()) if (at <= step - STEPS) before.rates.delete(at)
        known.set(member, before)
      }
    },

    /** @param {string} member @returns {string} when its last word came, which does not tremble, ISO 8601 */
    heardAt: (member) => new Date(known.get(member)?.heardAt ?? 0).toISOString(),

    /** @param {string} member @returns {string} its requests over the last minutes, as points of a line */
    pointsOf (member) {
      const rates = Array.from(known.get(member)?.rates ?? [])
      const most = Math.max(...rates.map(([, rate]) => rate)) || 1
      return rates.map(([at, rate]) => `${Math.round(SPARK_BOX.width * (1 - (step - at) / (STEPS - 1)))},${Math.round(SPARK_BOX.height - PADDING - (SPARK_BOX.height - 2 * PADDING) * rate / most)}`).join(' ')
    },

    /**
     * Rollouts before the present one, as far as they are known at the moment; they do not change.
     * @param {number | null} id of the present one @param {number} now wall time, ms
     * @returns {Summary[]} newest first
     */
    past (id, now) {
      ask(id, now)
      return past?.rollouts ?? []
    },

    /** The same, once they have come. @param {number | null} id @param {number} now @returns {Promise<Summary[]>} */
    pastOf: (id, now) => ask(id, now)
  }

  /** @param {number | null} id @param {number} now */
  function ask (id, now) {
    if (past && past.id === id && (past.rollouts.length > 0 || now - past.at < PAST_AGAIN_MS)) return past.coming
    const asked = { id, at: now, coming: coming(), rollouts: past?.rollouts ?? [] }
    past = asked
    return asked.coming

    async function coming () {
      const rollouts = (await fleet.past().catch(() => [])).filter((each) => each.id !== id).map(summaryOf)
      asked.rollouts = rollouts
      return rollouts
    }
  }
}

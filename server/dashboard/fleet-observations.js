import { summaryOf } from '../api/fleet.js'
import { SPARK_BOX } from './sparkline.js'

/**
 * What pages about the fleet remember between two renderings: the requests of each member over the last minutes, when a
 * silent member was last heard, and the rollouts before the current one.
 * @typedef {import('../fleet/app-fleet.js').AppFleet} Fleet
 * @typedef {import('../api/fleet.js').Summary} Summary
 * @typedef {import('../fleet/presence.js').Member} Member
 * @typedef {ReturnType<typeof createObservations>} Observations
 */

/** One point of a line covers this time. */
const STEP_MS = 10_000
const STEPS = 30
const PADDING = 3
/** An age is exact to the millisecond but comes from another clock, so small changes are ignored. */
const SAME_WITHIN_MS = 2000
/** Past rollouts come over the network, so an empty list is not asked for again sooner. */
const PAST_RETRY_MS = 60_000

/** @type {WeakMap<Fleet, Observations>} */
const OBSERVATIONS = new WeakMap()

/** @param {Fleet} fleet @returns {Observations} */
export function observationsOf (fleet) {
  const observations = OBSERVATIONS.get(fleet) ?? createObservations(fleet)
  OBSERVATIONS.set(fleet, observations)
  return observations
}

/** @param {Pick<Fleet, 'past'>} fleet */
export function createObservations (fleet) {
  /** @type {Map<string, { heardAt: number, rates: Map<number, number> }>} `heardAt`: wall time, ms; `rates`: by the number of the step */
  const known = new Map()
  let step = 0
  /** @type {{ id: number | null, at: number, coming: Promise<Summary[]>, rollouts: Summary[] } | null} */
  let past = null

  return {
    /** @param {Member[]} members @param {number} now wall time, ms */
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

    /** @param {string} member @returns {string} when it was last heard, ISO 8601; small deviations are left out */
    heardAt: (member) => new Date(known.get(member)?.heardAt ?? 0).toISOString(),

    /** @param {string} member @returns {string} its requests over the last minutes, as the points of an SVG polyline */
    pointsOf (member) {
      const rates = Array.from(known.get(member)?.rates ?? [])
      const most = Math.max(...rates.map(([, rate]) => rate)) || 1
      return rates.map(([at, rate]) => {
        const x = SPARK_BOX.width * (1 - (step - at) / (STEPS - 1))
        const y = SPARK_BOX.height - PADDING - (SPARK_BOX.height - 2 * PADDING) * rate / most
        return `${Math.round(x)},${Math.round(y)}`
      }).join(' ')
    },

    /**
     * Lists the rollouts before the current one that are known now. They do not change.
     * @param {number | null} id of the current one @param {number} now wall time, ms
     * @returns {Summary[]} newest first
     */
    past (id, now) {
      askForPast(id, now)
      return past?.rollouts ?? []
    },

    /** The same, but waits for the answer. @param {number | null} id @param {number} now @returns {Promise<Summary[]>} */
    pastOf: (id, now) => askForPast(id, now)
  }

  /** @param {number | null} id @param {number} now */
  function askForPast (id, now) {
    if (past && past.id === id && (past.rollouts.length > 0 || now - past.at < PAST_RETRY_MS)) return past.coming
    const asked = { id, at: now, coming: fetchPast(), rollouts: past?.rollouts ?? [] }
    past = asked
    return asked.coming

    async function fetchPast () {
      const rollouts = (await fleet.past().catch(() => [])).filter((each) => each.id !== id).map(summaryOf)
      asked.rollouts = rollouts
      return rollouts
    }
  }
}

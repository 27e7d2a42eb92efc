/**
 * Decides which hosts of the fleet are silent, for the histories. Each host decides by itself, by the reports that come here, and says
 * nothing while it cannot know: without NATS, after it has just connected, and after it was stopped or asleep itself.
 * @typedef {ReturnType<typeof createSilenceWatch>} SilenceWatch
 * @typedef {import('./presence.js').Host} Host
 * @typedef {{ host: Host, heardAt: number, steadyFrom: number | null }} Silence  `host`: as it was last heard, and `heardAt`: when; `steadyFrom`:
 *   since when it reports again; both monotonic, ms
 * @typedef {object} Look
 * @property {Host[]} hosts
 * @property {ReadonlyMap<string, Silence>} silences  by member
 * @property {ReadonlyMap<string, number>} returned  the hosts that are back since the last look, and how long they were silent in ms
 */

const EVERY_MS = 5000
/** Others may need as long to find NATS again as this host did, and their reports as long to come. */
const SETTLE_MS = 30_000
/** A host that reports for a moment is not back yet: it would be silent and back by turns. */
const STEADY_MS = 30_000
const MAX_STEADY_MS = 10 * 60_000
const HOUR_MS = 60 * 60_000
/** To larger fleets no host listens all the time: each report would go to everybody. */
const MAX_HEARD = 30
const REST_MS_PER_HOST = 600

/**
 * @param {object} parts
 * @param {Pick<import('./nats-connection.js').Connection, 'state'>} parts.nats
 * @param {Pick<import('./presence.js').Presence, 'all' | 'glance' | 'problem' | 'isHearing'>} parts.presence
 * @param {(look: Look) => void} parts.onLook
 * @param {() => number} [parts.now]  monotonic, ms
 * @param {Pick<typeof globalThis, 'setInterval' | 'clearInterval'>} [parts.timers]
 */
export function createSilenceWatch ({ nats, presence, onLook, now = () => performance.now(), timers = globalThis }) {
  /** @type {Map<string, Silence>} */
  const silences = new Map()
  /** When each host came back, in the last hour. @type {Map<string, number[]>} */
  const returns = new Map()
  let lookedAt = now()
  let settledFrom = Infinity
  let isLarge = false
  let nextGlanceAt = -Infinity
  let isLooking = false
  const timer = timers.setInterval(() => { look() }, EVERY_MS)
  timer?.unref?.()

  return {
    /** @returns {Silence[]} by name */
    list: () => [...silences.values()].sort((one, other) => one.host.member < other.host.member ? -1 : 1),

    look,

    close () { timers.clearInterval(timer) }
  }

  async function look () {
    const at = now()
    const wasStopped = at - lookedAt > 3 * EVERY_MS
    lookedAt = at
    if (!canKnow()) {
      settledFrom = Infinity
      return
    }
    if (wasStopped || settledFrom === Infinity) settledFrom = at + SETTLE_MS
    if (isLooking || (isLarge && at < nextGlanceAt)) return
    isLooking = true
    const { members, isComplete } = await (isLarge ? presence.glance() : presence.all())
    isLooking = false
    isLarge = members.length > MAX_HEARD
    nextGlanceAt = at + (isLarge ? REST_MS_PER_HOST * members.length : 0)
    if (isComplete && canKnow() && presence.isHearing && now() >= settledFrom) judge(members)
  }

  /** Where its own reports do not arrive, those of others may not arrive either. */
  function canKnow () {
    return nats.state.isConnected && presence.problem === null
  }

  /** @param {Host[]} hosts */
  function judge (hosts) {
    const at = now()
    const names = new Set(hosts.map(({ member }) => member))
    for (const name of silences.keys()) if (!names.has(name)) silences.delete(name)
    /** @type {Map<string, number>} */
    const returned = new Map()
    for (const host of hosts) {
      const silence = silences.get(host.member)
      if (host.isOwn) continue
      if (host.isSilent && silence) silence.steadyFrom = null
      else if (host.isSilent) silences.set(host.member, { host, heardAt: at - host.ageMs, steadyFrom: null })
      else if (silence) endOnceSteady(silence, { at, heardAt: at - host.ageMs, returned })
    }
    onLook({ hosts, silences, returned })
  }

  /** @param {Silence} silence @param {{ at: number, heardAt: number, returned: Map<string, number> }} so  `heardAt`: its last report */
  function endOnceSteady (silence, { at, heardAt, returned }) {
    const { member } = silence.host
    silence.steadyFrom ??= heardAt
    const recent = (returns.get(member) ?? []).filter((time) => at - time < HOUR_MS)
    if (heardAt - silence.steadyFrom < Math.min(STEADY_MS * 2 ** recent.length, MAX_STEADY_MS)) return
    silences.delete(member)
    returns.set(member, [...recent, at])
    returned.set(member, silence.steadyFrom - silence.heardAt)
  }
}

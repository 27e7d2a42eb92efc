import type { Host, Presence } from './presence.ts'
import type { Connection } from './nats-connection.ts'

// Decides which hosts of the fleet are silent, for the histories. Each host decides by itself, by the reports that come
// here, and says nothing while it cannot know: without NATS, after it has just connected, and after it was stopped or
// asleep itself.

/**
 * `host`: as it was last heard, and `heardAt`: when; `steadyFrom`:
 * since when it reports again; both monotonic, ms
 */
export type Silence = { host: Host, heardAt: number, steadyFrom: number | null }
export type Look = {
  hosts: Host[],
  /** by member */
  silences: ReadonlyMap<string, Silence>,
  /** the hosts that are back since the last look, and how long they were silent in ms */
  returned: ReadonlyMap<string, number>
}

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

export function createSilenceWatch ({ nats, presence, onLook, now = () => performance.now(), timers = globalThis }: {
  nats: Pick<Connection, 'state'>,
  presence: Pick<Presence, 'all' | 'glance' | 'problem' | 'isHearing'>,
  onLook: (look: Look) => void,
  /** monotonic, ms */
  now?: () => number,
  timers?: Pick<typeof globalThis, 'setInterval' | 'clearInterval'>
}) {
  const silences: Map<string, Silence> = new Map()
  /** When each host came back, in the last hour. */
  const returns: Map<string, number[]> = new Map()
  let lookedAt = now()
  let settledFrom = Infinity
  let isLarge = false
  let nextGlanceAt = -Infinity
  let isLooking = false
  const timer = timers.setInterval(() => {
    look()
  }, EVERY_MS)
  timer?.unref?.()

  return {
    /** @returns by name */
    list: (): Silence[] => [...silences.values()].sort((one, other) => one.host.member < other.host.member ? -1 : 1),

    look,

    close () {
      timers.clearInterval(timer)
    }
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

  function judge (hosts: Host[]) {
    const at = now()
    const names = new Set(hosts.map(({ member }) => member))
    for (const name of silences.keys()) if (!names.has(name)) silences.delete(name)
    const returned: Map<string, number> = new Map()
    for (const host of hosts) {
      const silence = silences.get(host.member)
      if (host.isOwn) continue
      if (host.isSilent && silence) silence.steadyFrom = null
      else if (host.isSilent) silences.set(host.member, { host, heardAt: at - host.ageMs, steadyFrom: null })
      else if (silence) endOnceSteady(silence, { at, heardAt: at - host.ageMs, returned })
    }
    onLook({ hosts, silences, returned })
  }

  /** `heardAt`: its last report */
  function endOnceSteady (silence: Silence,
    { at, heardAt, returned }: { at: number, heardAt: number, returned: Map<string, number> })
  {
    const { member } = silence.host
    silence.steadyFrom ??= heardAt
    const recent = (returns.get(member) ?? []).filter((time) => at - time < HOUR_MS)
    if (heardAt - silence.steadyFrom < Math.min(STEADY_MS * 2 ** recent.length, MAX_STEADY_MS)) return
    silences.delete(member)
    returns.set(member, [...recent, at])
    returned.set(member, silence.steadyFrom - silence.heardAt)
  }
}

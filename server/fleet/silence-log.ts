import { formatExactDuration } from '../../public/format.ts'
import { lastKnownText } from '../words/last-known.ts'
import type { Host } from './presence.ts'
import type { Look, Silence } from './silence-watch.ts'
import type { Past } from '../events/notices.ts'
import type { NewEvent } from '../events/stream.ts'

/**
 * Writes into one history which hosts fall silent, come back or leave: each silence once, also if this master began in
 * the middle of it.
 */

const TYPES = Object.freeze(['fleet.host-silent', 'fleet.host-back', 'fleet.host-left'])
const MAX_EVENTS = 200
/** A master that has just begun counts as there when a host was last heard so shortly before. */
const SHORTLY_MS = 2 * 60_000
/** The time of two reports. A host that has not reported for longer may fall silent too, so another one tells. */
const FRESH_MS = 10_000

export function createSilenceLog ({ app, member: own, history, publish, now = () => performance.now() }: {
  /** only of hosts that have this one; null: of all */
  app: string | null,
  /** this host */
  member: string,
  history: Past,
  publish: (event: NewEvent) => void,
  /** monotonic, ms */
  now?: () => number
}): (look: Look) => void {
  const startedAt = now()
  /** The hosts of which the history says that they are silent, with the master that each had. */
  let told: Map<string, string | null> | null = null

  return (look) => {
    told ??= lastTold(history)
    const concerned = [...look.silences.values()].filter(({ host }) =>
      runsOf(host).length > 0 || told?.has(host.member)
    )
    for (const silence of concerned) if (!told.has(silence.host.member)) tellSilent(silence, look, told)
    for (const [name, boot] of told) if (!look.silences.has(name)) tellEnd(name, boot, look, told)
  }

  function tellSilent ({ host, heardAt }: Silence, look: Look, told: Map<string, string | null>) {
    const { member, boot } = host
    told.set(member, boot)
    const ageMs = Math.max(0, Math.round(now() - heardAt))
    const apps = runsOf(host).map(({ app, release, workers, health }) => ({ app, release, workers, text: health.text }))
    publish({ type: 'fleet.host-silent', actor: 'system',
      message: `${member} is silent: no report for ${formatExactDuration(ageMs)}. ${lastKnownText(runsOf(host))}`,
      detail: { member, host: host.host, boot, heardAt: new Date(Date.now() - ageMs).toISOString(), apps,
        isReporter: heardAt > startedAt - SHORTLY_MS && isReporter(look) } })
  }

  function tellEnd (name: string, boot: string | null, look: Look, told: Map<string, string | null>) {
    told.delete(name)
    const host = look.hosts.find(({ member }) => member === name)
    const silentMs = look.returned.get(name) ?? null
    const detail = { member: name, isReporter: isReporter(look) }
    if (!host)
      return publish({ type: 'fleet.host-left', actor: 'system', message: `${name} is no longer in the fleet`, detail })
    const after = silentMs === null ? '' : ` after ${formatExactDuration(Math.round(silentMs / 1000) * 1000)}`
    const how = boot === null
      ? ''
      : host.boot === boot
      ? '; clusterdeck had kept running there'
      : '; clusterdeck was restarted there'
    publish({ type: 'fleet.host-back', actor: 'system', message: `${name} is back${after}${how}`,
      detail: { ...detail, silentMs } })
  }

  function runsOf (host: Host) {
    return app === null ? host.apps : host.apps.filter((each) => each.app === app && each.state !== 'stopped')
  }

  /** One host of those that see it tells it outside: by alerts, and to the history of the fleet. */
  function isReporter ({ hosts }: Look) {
    const [first] = hosts.filter((host) => !host.isSilent && host.ageMs < FRESH_MS && runsOf(host).length > 0).map((
      { member }
    ) => member).sort()
    return first === own
  }
}

function lastTold (history: Past): Map<string, string | null> {
  const told = new Map()
  try {
    for (const { type, detail } of history.page({ type: [...TYPES], limit: MAX_EVENTS }).items.reverse()) {
      if (typeof detail?.member !== 'string') continue
      if (type === 'fleet.host-silent') told.set(detail.member, typeof detail.boot === 'string' ? detail.boot : null)
      else told.delete(detail.member)
    }
  } catch {
    // The history cannot be read now, so a silence from before may be told again.
  }
  return told
}

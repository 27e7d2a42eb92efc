import { formatExactDuration } from '../../public/format.js'
import { lastKnownText } from '../last-known.js'

/**
 * Writes into one history which hosts fall silent, come back or leave: each silence once, also if this master began in the middle of it.
 * @typedef {import('./presence.js').Host} Host
 * @typedef {import('./silence-watch.js').Look} Look
 * @typedef {import('./silence-watch.js').Silence} Silence
 */

const TYPES = Object.freeze(['fleet.host-silent', 'fleet.host-back', 'fleet.host-left'])
const MAX_EVENTS = 200
/** A master that has just begun counts as there when a host was last heard so shortly before. */
const SHORTLY_MS = 2 * 60_000
/** The time of two reports. A host that has not reported for longer may fall silent too, so another one tells. */
const FRESH_MS = 10_000

/**
 * @param {object} parts
 * @param {string | null} parts.app  only of hosts that have this one; null: of all
 * @param {string} parts.member  this host
 * @param {import('../events/notices.js').Past} parts.history
 * @param {(event: import('../events/stream.js').NewEvent) => void} parts.publish
 * @param {() => number} [parts.now]  monotonic, ms
 * @returns {(look: Look) => void}
 */
export function createSilenceLog ({ app, member: own, history, publish, now = () => performance.now() }) {
  const startedAt = now()
  /** The hosts of which the history says that they are silent, with the master that each had. @type {Map<string, string | null> | null} */
  let told = null

  return (look) => {
    told ??= readTold(history)
    const concerned = [...look.silences.values()].filter(({ host }) => runsOf(host).length > 0 || told?.has(host.member))
    for (const silence of concerned) if (!told.has(silence.host.member)) tellSilent(silence, look, told)
    for (const [name, boot] of told) if (!look.silences.has(name)) tellEnd(name, boot, look, told)
  }

  /** @param {Silence} silence @param {Look} look @param {Map<string, string | null>} told */
  function tellSilent ({ host, heardAt }, look, told) {
    const { member, boot } = host
    told.set(member, boot)
    const ageMs = Math.max(0, Math.round(now() - heardAt))
    const apps = runsOf(host).map(({ app, release, workers, health }) => ({ app, release, workers, text: health.text }))
    publish({
      type: 'fleet.host-silent',
      actor: 'system',
      message: `${member} is silent: no report for ${formatExactDuration(ageMs)}. ${lastKnownText(runsOf(host))}`,
      detail: { member, host: host.host, boot, heardAt: new Date(Date.now() - ageMs).toISOString(), apps, isReporter: heardAt > startedAt - SHORTLY_MS && isReporter(look) }
    })
  }

  /** @param {string} name @param {string | null} boot @param {Look} look @param {Map<string, string | null>} told */
  function tellEnd (name, boot, look, told) {
    told.delete(name)
    const host = look.hosts.find(({ member }) => member === name)
    const silentMs = look.returned.get(name) ?? null
    const detail = { member: name, isReporter: isReporter(look) }
    if (!host) return publish({ type: 'fleet.host-left', actor: 'system', message: `${name} is no longer in the fleet`, detail })
    const after = silentMs === null ? '' : ` after ${formatExactDuration(Math.round(silentMs / 1000) * 1000)}`
    const how = boot === null ? '' : host.boot === boot ? '; clusterdeck had kept running there' : '; clusterdeck was restarted there'
    publish({ type: 'fleet.host-back', actor: 'system', message: `${name} is back${after}${how}`, detail: { ...detail, silentMs } })
  }

  /** @param {Host} host */
  function runsOf (host) {
    return app === null ? host.apps : host.apps.filter((each) => each.app === app && each.state !== 'stopped')
  }

  /** One host of those that see it tells it outside: by alerts, and to the history of the fleet. @param {Look} look */
  function isReporter ({ hosts }) {
    const [first] = hosts.filter((host) => !host.isSilent && host.ageMs < FRESH_MS && runsOf(host).length > 0).map(({ member }) => member).sort()
    return first === own
  }
}

/** @param {import('../events/notices.js').Past} history @returns {Map<string, string | null>} */
function readTold (history) {
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

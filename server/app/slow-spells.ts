import type { EventStream } from '../events/stream.ts'
import type { Spell, SpellEnd } from '../vitals/slow-spells.ts'

/** The events of a time in which requests are slower than usual. */
export function tellSlowSpells (events: Pick<EventStream, 'publish'>) {
  return { onSlow (spell: Spell) {
    events.publish({ type: 'route.slowed', actor: 'system', message: slowText(spell), detail: detailOf(spell) })
  }, onSlowEnd ({ spell, untilMs, isUsualNow }: SpellEnd) {
    const who = spell.others.length === 0 ? nameOf(spell) : `${spell.others.length + 1} routes are`
    const message = isUsualNow
      ? `${who} slow for an hour: this is taken for usual now`
      : `${who} as fast as usual again`
    events.publish({ type: 'route.recovered', actor: 'system', message,
      detail: { ...detailOf(spell), until: isoTime(untilMs), lastedMs: untilMs - spell.sinceMs } })
  } }
}

/** What blocks the event loop makes many routes slow, and then none of them alone is the cause. */
function slowText (spell: Spell) {
  const figures = `p99 is ${roundMs(spell.p99Ms)} ms, usually ${roundMs(spell.usualP99Ms)} ms`
  return spell.others.length === 0
    ? `${nameOf(spell)} slow: the ${figures}`
    : `${spell.others.length + 1} routes are slow, most of all ${spell.route}: its ${figures}`
}

function nameOf ({ route }: Spell) {
  return route === null ? 'Requests are' : `${route} is`
}

function detailOf ({ route, sinceMs, requests, p99Ms, usualP99Ms, limitMs, others }: Spell) {
  return { route, since: isoTime(sinceMs), requests, p99Ms: roundMs(p99Ms), usualP99Ms: roundMs(usualP99Ms),
    limitMs: roundMs(limitMs), others }
}

function isoTime (ms: number) {
  return new Date(ms).toISOString()
}

function roundMs (ms: number) {
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)
}

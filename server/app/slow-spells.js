/**
 * The events of a time in which requests are slower than usual.
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} events
 */
export function tellSlowSpells (events) {
  return {
    /** @param {import('../vitals/slow-spells.js').Spell} spell */
    onSlow (spell) {
      events.publish({ type: 'route.slowed', actor: 'system', message: slowText(spell), detail: detailOf(spell) })
    },

    /** @param {import('../vitals/slow-spells.js').SpellEnd} end */
    onSlowEnd ({ spell, untilMs, isUsualNow }) {
      const who = spell.others.length === 0 ? nameOf(spell) : `${spell.others.length + 1} routes are`
      const message = isUsualNow ? `${who} slow for an hour: this is taken for usual now` : `${who} as fast as usual again`
      events.publish({ type: 'route.recovered', actor: 'system', message, detail: { ...detailOf(spell), until: isoTime(untilMs), lastedMs: untilMs - spell.sinceMs } })
    }
  }
}

/** What blocks the event loop makes many routes slow, and then none of them alone is the cause. @param {import('../vitals/slow-spells.js').Spell} spell */
function slowText (spell) {
  const figures = `p99 is ${roundMs(spell.p99Ms)} ms, usually ${roundMs(spell.usualP99Ms)} ms`
  return spell.others.length === 0 ? `${nameOf(spell)} slow: the ${figures}` : `${spell.others.length + 1} routes are slow, most of all ${spell.route}: its ${figures}`
}

/** @param {import('../vitals/slow-spells.js').Spell} spell */
function nameOf ({ route }) {
  return route === null ? 'Requests are' : `${route} is`
}

/** @param {import('../vitals/slow-spells.js').Spell} spell */
function detailOf ({ route, sinceMs, requests, p99Ms, usualP99Ms, limitMs, others }) {
  return { route, since: isoTime(sinceMs), requests, p99Ms: roundMs(p99Ms), usualP99Ms: roundMs(usualP99Ms), limitMs: roundMs(limitMs), others }
}

/** @param {number} ms */
function isoTime (ms) {
  return new Date(ms).toISOString()
}

/** @param {number} ms */
function roundMs (ms) {
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)
}

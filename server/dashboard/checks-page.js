import { PROBLEMS } from '../doctor/finding.js'
import { count } from '../health.js'

/** @typedef {import('../doctor/finding.js').Finding} Finding */
/** @typedef {import('../doctor/finding.js').Severity} Severity */

/** @type {Readonly<Record<Severity, { label: string, tone: import('../events/kinds.js').Tone, icon: string }>>} */
const SHOWN = Object.freeze({
  error: { label: 'Error', tone: 'bad', icon: 'circle-x' },
  warning: { label: 'Warning', tone: 'warn', icon: 'triangle-alert' },
  unknown: { label: 'Not known', tone: 'idle', icon: 'circle-dashed' },
  info: { label: 'Info', tone: 'info', icon: 'info' },
  ok: { label: 'OK', tone: 'ok', icon: 'circle-check' }
})

/** What stands before a line that mends something. @type {Readonly<Record<import('../doctor/finding.js').Mend['how'], string>>} */
const PLACES = Object.freeze({ command: 'Run in', option: 'Set in', flags: 'Add to', code: '' })

/** @param {{ deck: Pick<import('../deck.js').Deck, 'examine'> }} parts */
export async function checksModel ({ deck }) {
  const { checkedAt, problems, items } = await deck.examine()
  const ofTone = (/** @type {boolean} */ isProblem) => items.filter(({ severity }) => severity !== 'ok' && PROBLEMS.includes(severity) === isProblem).map(toShown)
  return {
    checkedAt,
    headline: problems === 0 ? 'Nothing found' : count(problems, 'problem'),
    problems: ofTone(true),
    others: ofTone(false),
    passed: items.filter(({ severity }) => severity === 'ok').map(({ id, title }) => ({ id, title }))
  }
}

/** @param {Finding} finding */
function toShown ({ severity, mend, ...finding }) {
  return { ...finding, ...SHOWN[severity], mend: mend.map(({ how, text, where }) => ({ how, text, where, place: where === null ? 'Run' : PLACES[how], isCode: how === 'code' })) }
}

import { PROBLEMS, type Finding, type Mend, type Severity } from './finding.ts'
import { count } from '../words/health.ts'
import type { Tone } from '../events/kinds.ts'
import type { Deck } from '../deck.ts'

const SHOWN: Readonly<Record<Severity, { label: string, tone: Tone, icon: string }>> = Object.freeze({
  error: { label: 'Error', tone: 'bad', icon: 'circle-x' },
  warning: { label: 'Warning', tone: 'warn', icon: 'triangle-alert' },
  unknown: { label: 'Not known', tone: 'idle', icon: 'circle-dashed' },
  info: { label: 'Info', tone: 'info', icon: 'info' },
  ok: { label: 'OK', tone: 'ok', icon: 'circle-check' }
})

/** What stands before a line that mends something. */
const PLACES: Readonly<Record<Mend['how'], string>> = Object.freeze({ command: 'Run in', option: 'Set in',
  flags: 'Add to', code: '' })

export async function checksModel ({ deck }: { deck: Pick<Deck, 'examine'> }) {
  const { checkedAt, problems, items } = await deck.examine()
  const ofTone = (isProblem: boolean) =>
    items.filter(({ severity }) => severity !== 'ok' && PROBLEMS.includes(severity) === isProblem).map(toShown)
  return { checkedAt, headline: problems === 0 ? 'Nothing found' : count(problems, 'problem'), problems: ofTone(true),
    others: ofTone(false),
    passed: items.filter(({ severity }) => severity === 'ok').map(({ id, title }) => ({ id, title })) }
}

function toShown ({ severity, mend, ...finding }: Finding) {
  return { ...finding, ...SHOWN[severity],
    mend: mend.map(({ how, text, where }) => ({ how, text, where, place: where === null ? 'Run' : PLACES[how],
      isCode: how === 'code' })
    ) }
}

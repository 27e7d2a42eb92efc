import { settingState } from '../config/api.ts'
import { textOfValue } from '../config/value-text.ts'
import { saidValue } from '../../public/setting-value.ts'
import { PROBLEMS, type Finding, type Mend, type Severity } from './finding.ts'
import { count } from '../words/health.ts'
import type { Tone } from '../events/kinds.ts'
import type { Deck as WholeDeck } from '../deck.ts'

type Deck = Pick<WholeDeck, 'examine' | 'settings'>

const SHOWN: Readonly<Record<Severity, { label: string, tone: Tone, icon: string }>> = Object.freeze({
  error: { label: 'Error', tone: 'bad', icon: 'circle-x' },
  warning: { label: 'Warning', tone: 'warn', icon: 'triangle-alert' },
  unknown: { label: 'Not known', tone: 'idle', icon: 'circle-dashed' },
  info: { label: 'Info', tone: 'idle', icon: 'info' },
  ok: { label: 'OK', tone: 'idle', icon: 'circle-check' }
})

/** What stands before a line that mends something. */
const PLACES: Readonly<Record<Mend['how'], string>> = Object.freeze({ command: 'Run in', option: 'Set in',
  flags: 'Add to', code: '' })

export async function checksModel ({ deck }: { deck: Deck }) {
  const { checkedAt, problems, items } = await deck.examine()
  const ofTone = (isProblem: boolean) =>
    items.filter(({ severity }) => severity !== 'ok' && PROBLEMS.includes(severity) === isProblem).map((finding) =>
      toShown(finding, deck)
    )
  return { checkedAt, headline: problems === 0 ? 'Nothing found' : count(problems, 'problem'), problems: ofTone(true),
    others: ofTone(false),
    passed: items.filter(({ severity }) => severity === 'ok').map(({ id, title }) => ({ id, title })) }
}

function toShown ({ severity, mend, ...finding }: Finding, deck: Deck) {
  return { ...finding, ...SHOWN[severity],
    mend: mend.map(({ how, text, where, sets }) => ({ text, where, place: where === null ? 'Run' : PLACES[how],
      isCode: how === 'code', button: sets ? buttonOf(sets, deck) : null })
    ) }
}

/** The form of a button that sets an option, of which its reader has seen the value. */
function buttonOf ({ name, value }: NonNullable<Mend['sets']>, { settings }: Deck) {
  const setting = settings.list().find((each) => each.name === name)
  return setting
    ? { label: `Set ${name} to ${saidValue(value, setting.unit) ?? textOfValue(value)}`,
      fields: { name, value: textOfValue(value), seen: settingState(setting) } }
    : null
}

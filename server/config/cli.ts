import { textOfValue, valueFromText } from './value-text.ts'
import { listCommand, tableText } from '../cli/actions.ts'
import { checkedForm, misuse } from '../cli/usage.ts'
import type { Setting } from '../api/shapes.ts'
import type { Context } from '../cli/commands.ts'
import type { Columns } from '../cli/output.ts'

const EFFECTS: Readonly<Record<Setting['takesEffect'], string>> = Object.freeze({ now: 'now', deploy: 'with a deploy',
  start: 'at a start' })

const SETTINGS: Columns<Setting> = { OPTION: 'name',
  VALUE: ({ value, isSecret }) => isSecret ? '(hidden)' : value === null ? null : textOfValue(value),
  CHANGES: ({ takesEffect }) => EFFECTS[takesEffect], SOURCE: 'source', FROM: 'from' }
const settingsText = tableText(SETTINGS)

const printSettings = listCommand<Setting>({ path: '/config', textOf: settingsText })

/** Prints the options of a running master, or changes some. `given`: `drain.deadlineMs=10000`. */
export async function configCommand (context: Context, action?: string, given: string[] = []) {
  if (action === undefined) return await printSettings(context)
  checkedForm('config', /^set$/, '"set" or nothing', action)
  const wanted = readChanges(given)
  const { items } = await context.api.patch<{ items: Setting[] }>('/config', wanted)
  const changed = { items: items.filter(({ name }) => Object.hasOwn(wanted, name)) }
  context.answer(changed, () => settingsText(changed))
}

/** @throws {DeckError} usage */
function readChanges (given: string[]): Record<string, unknown> {
  const expected = 'a change such as drain.deadlineMs=10000'
  if (given.length === 0) throw misuse('config set', expected, 'nothing')
  const changes: Map<string, unknown> = new Map()
  for (const change of given) {
    const [, name, text] = /^([^=]+)=(.*)$/s.exec(change) ?? []
    // The value may be a secret, so the message has only the beginning.
    if (name === undefined) throw misuse('config set', expected, JSON.stringify(change.slice(0, 40)))
    if (changes.has(name)) throw misuse('config set', `${name} once`, 'it twice')
    changes.set(name, valueFromText(text))
  }
  return Object.fromEntries(changes)
}

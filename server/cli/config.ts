import { textOfValue, valueFromText } from '../config/value-text.ts'
import { formatTable } from './output.ts'
import { misuse } from './usage.ts'
import type { Setting } from '../api/shapes.ts'
import type { Context } from './commands.ts'

/** Prints the options of a running master, or changes some. `given`: `drain.deadlineMs=10000`. */
export async function configCommand ({ api, answer }: Context, action?: string, given: string[] = []) {
  if (action !== undefined && action !== 'set') throw misuse('config', '"set" or nothing', JSON.stringify(action))
  if (action === undefined) return printSettings(await api.get<{ items: Setting[] }>('/config'))
  const wanted = readChanges(given)
  const body = await api.patch<{ items: Setting[] }>('/config', wanted)
  printSettings({ items: body.items.filter(({ name }) => Object.hasOwn(wanted, name)) })

  function printSettings (body: { items: Setting[] }) {
    answer(body, () => settingsText(body.items))
  }
}

const EFFECTS: Readonly<Record<Setting['takesEffect'], string>> = Object.freeze({ now: 'now', deploy: 'with a deploy',
  start: 'at a start' })

function settingsText (items: Setting[]) {
  return formatTable(['OPTION', 'VALUE', 'CHANGES', 'SOURCE', 'FROM'],
    items.map((
      { name, value, takesEffect, isSecret, source, from }
    ) => [name, isSecret ? '(hidden)' : value === null ? null : textOfValue(value), EFFECTS[takesEffect], source,
      from]
    ))
}

/** @throws {DeckError} usage */
function readChanges (given: string[]): Record<string, unknown> {
  if (given.length === 0) throw misuse('config set', 'a change such as drain.deadlineMs=10000', 'nothing')
  const expected = 'a change such as drain.deadlineMs=10000'
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

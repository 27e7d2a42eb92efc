import { textOfValue, valueFromText } from '../config/value-text.ts'
import { DeckError } from '../errors.ts'
import { formatTable, jsonText } from './output.ts'
import type { Setting } from '../api/config.ts'
import type { Context } from './commands.ts'

/** Prints the options of a running master, or changes some. `given`: `drain.deadlineMs=10000`. */
export async function configCommand ({ api, options, print }: Context, action?: string, given: string[] = []) {
  if (action !== undefined && action !== 'set')
    throw new DeckError('usage', `config: expected "set" or nothing, received ${JSON.stringify(action)}`)
  if (action === undefined) return printSettings(await api.get<{ items: Setting[] }>('/config'))
  const wanted = readChanges(given)
  const body = await api.patch<{ items: Setting[] }>('/config', wanted)
  printSettings({ items: body.items.filter(({ name }) => Object.hasOwn(wanted, name)) })

  function printSettings (body: { items: Setting[] }) {
    print(options.json ? jsonText(body) : settingsText(body.items))
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
  if (given.length === 0)
    throw new DeckError('usage', 'config set: expected a change such as drain.deadlineMs=10000, received nothing')
  const expected = 'a change such as drain.deadlineMs=10000'
  const changes: Map<string, unknown> = new Map()
  for (const change of given) {
    const [, name, text] = /^([^=]+)=(.*)$/s.exec(change) ?? []
    // The value may be a secret, so the message has only the beginning.
    if (name === undefined)
      throw new DeckError('usage', `config set: expected ${expected}, received ${JSON.stringify(change.slice(0, 40))}`)
    if (changes.has(name)) throw new DeckError('usage', `config set: expected ${name} once, received it twice`)
    changes.set(name, valueFromText(text))
  }
  return Object.fromEntries(changes)
}

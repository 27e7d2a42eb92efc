import { textOfValue, valueFromText } from '../config/value-text.js'
import { DeckError } from '../errors.js'
import { formatTable, jsonText } from './output.js'

/** @typedef {import('../api/config.js').Setting} Setting */

/**
 * Prints the options of a running master, or changes some.
 * @param {import('./commands.js').Context} context @param {string} [action] @param {string[]} [given]  `drain.deadlineMs=10000`
 */
export async function configCommand ({ api, options, print }, action, given = []) {
  if (action !== undefined && action !== 'set') throw new DeckError('usage', `config: expected "set" or nothing, received ${JSON.stringify(action)}`)
  if (action === undefined) return printSettings(await api.get('/config'))
  const wanted = readChanges(given)
  const body = await api.patch('/config', wanted)
  printSettings({ items: body.items.filter((/** @type {Setting} */ { name }) => Object.hasOwn(wanted, name)) })

  /** @param {{ items: Setting[] }} body */
  function printSettings (body) {
    print(options.json ? jsonText(body) : settingsText(body.items))
  }
}

/** @type {Readonly<Record<Setting['takesEffect'], string>>} */
const EFFECTS = Object.freeze({ now: 'now', deploy: 'with a deploy', start: 'at a start' })

/** @param {Setting[]} items */
function settingsText (items) {
  return formatTable(['OPTION', 'VALUE', 'CHANGES', 'SOURCE', 'FROM'], items.map(({ name, value, takesEffect, isSecret, source, from }) => [
    name, isSecret ? '(hidden)' : value === null ? null : textOfValue(value), EFFECTS[takesEffect], source, from
  ]))
}

/** @param {string[]} given @returns {Record<string, unknown>} @throws {DeckError} usage */
function readChanges (given) {
  if (given.length === 0) throw new DeckError('usage', 'config set: expected a change such as drain.deadlineMs=10000, received nothing')
  const expected = 'a change such as drain.deadlineMs=10000'
  /** @type {Map<string, unknown>} */
  const changes = new Map()
  for (const change of given) {
    const [, name, text] = /^([^=]+)=(.*)$/s.exec(change) ?? []
    // The value may be a secret, so the message has only the beginning.
    if (name === undefined) throw new DeckError('usage', `config set: expected ${expected}, received ${JSON.stringify(change.slice(0, 40))}`)
    if (changes.has(name)) throw new DeckError('usage', `config set: expected ${name} once, received it twice`)
    changes.set(name, valueFromText(text))
  }
  return Object.fromEntries(changes)
}

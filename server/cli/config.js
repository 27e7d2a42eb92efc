import { textOfValue, valueFromText } from '../config/value-text.js'
import { DeckError } from '../errors.js'
import { table } from './output.js'

/**
 * The options of a running master, or a change of some.
 * @param {import('./commands.js').Context} context @param {string} [action] @param {string[]} [given]  `drain.deadlineMs=10000`
 */
export async function config ({ api, options, print }, action, given = []) {
  if (action !== undefined && action !== 'set') throw new DeckError('usage', `config: expected "set" or nothing, received ${JSON.stringify(action)}`)
  if (action === undefined) return show(await api.get('/config'))
  const wanted = readChanges(given)
  const body = await api.patch('/config', wanted)
  show({ items: body.items.filter((/** @type {{ name: string }} */ { name }) => Object.hasOwn(wanted, name)) })

  /** @param {{ items: any[] }} body */
  function show (body) {
    print(options.json ? JSON.stringify(body, null, 2) : settingsText(body.items))
  }
}

/** @param {any[]} items */
function settingsText (items) {
  return table(['OPTION', 'VALUE', 'CHANGES', 'SOURCE', 'FROM'], items.map(({ name, value, isLive, isSecret, source, from }) => [
    name, isSecret ? '(hidden)' : value === null ? null : textOfValue(value), isLive ? 'now' : 'at a start', source, from
  ]))
}

/** @param {string[]} given @returns {Record<string, unknown>} @throws {DeckError} usage */
function readChanges (given) {
  if (given.length === 0) throw new DeckError('usage', 'config set: expected a change such as drain.deadlineMs=10000, received nothing')
  const pairs = given.map((change) => {
    const [, name, text] = /^([^=]+)=(.*)$/s.exec(change) ?? []
    // What stands behind the name may be a secret.
    if (name === undefined) throw new DeckError('usage', `config set: expected a change such as drain.deadlineMs=10000, received ${JSON.stringify(change.slice(0, 40))}`)
    return /** @type {const} */ ([name, valueFromText(text)])
  })
  const twice = pairs.find(([name], index) => pairs.findIndex(([other]) => other === name) !== index)
  if (twice) throw new DeckError('usage', `config set: expected ${twice[0]} once, received it twice`)
  return Object.fromEntries(pairs)
}

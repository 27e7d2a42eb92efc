import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { checkedId } from './id.js'
import { table } from './output.js'

/**
 * Tokens with a name: list, make, revoke.
 * @param {import('./commands.js').Context} context
 * @param {string} [action] @param {string} [subject]
 */
export async function tokens (context, action, subject) {
  if (action === undefined) return await list(context)
  if (!Object.hasOwn(ACTIONS, action)) throw new DeckError('usage', `tokens: expected create or revoke, received ${JSON.stringify(action)}${didYouMean(action, Object.keys(ACTIONS))}`)
  await ACTIONS[action](context, subject)
}

/** @type {Readonly<Record<string, (context: import('./commands.js').Context, subject?: string) => Promise<void>>>} */
const ACTIONS = Object.freeze({ create, revoke })

/** @param {import('./commands.js').Context} context */
async function list ({ api, options, print }) {
  const body = await api.get('/tokens')
  if (options.json) return print(JSON.stringify(body, null, 2))
  print(table(['ID', 'NAME', 'ROLE', 'MADE', 'BY', 'WITH', 'UNTIL'], body.items.map((/** @type {any} */ { id, name, role, createdAt, createdBy, createdWith, expiresAt, isExpired }) => [
    id, name, role, createdAt, createdBy, createdWith ? `token ${createdWith}` : 'admin.token', isExpired ? `${expiresAt} (ended)` : expiresAt
  ])))
}

/** @param {import('./commands.js').Context} context @param {string} [name] */
async function create ({ api, options, print, tell }, name) {
  if (name === undefined) throw new DeckError('usage', 'tokens create: expected a name, received none')
  if (options.role === undefined) throw new DeckError('usage', '--role: expected viewer, operator or admin, received none')
  const made = await api.post('/tokens', { name, role: options.role, ...(options.ttl !== undefined && { ttl: options.ttl }) })
  if (options.json) return print(JSON.stringify(made, null, 2))
  tell(`token ${made.id} of ${made.name} (${made.role}), until ${made.expiresAt}; it is shown only now`)
  print(made.token)
}

/** @param {import('./commands.js').Context} context @param {string} [id] */
async function revoke ({ api, options, print }, id) {
  const ended = await api.delete(`/tokens/${checkedId('tokens revoke', id, 'a token')}`)
  print(options.json ? JSON.stringify(ended, null, 2) : `token ${ended.id} of ${ended.name} has ended${ended.alsoEnded?.length > 0 ? `, and what it had made: ${ended.alsoEnded.join(', ')}` : ''}`)
}

import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { checkedId } from './id.js'
import { namesIn } from './names.js'
import { formatTable, jsonText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../api/tokens.js').Token} Token */

/** @param {Context} context @param {string} [action] @param {string} [subject] */
export async function tokensCommand (context, action, subject) {
  if (action === undefined) return await listTokens(context)
  if (!Object.hasOwn(ACTIONS, action)) {
    throw new DeckError('usage', `tokens: expected create or revoke, received ${JSON.stringify(action)}${didYouMean(action, Object.keys(ACTIONS))}`)
  }
  await ACTIONS[action](context, subject)
}

/** @type {Readonly<Record<string, (context: Context, subject?: string) => Promise<void>>>} */
const ACTIONS = Object.freeze({ create: createToken, revoke: revokeToken })

/** @param {Context} context */
async function listTokens ({ api, options, print }) {
  /** @type {{ items: Token[] }} */
  const body = await api.get('/tokens')
  print(options.json ? jsonText(body) : formatTable(['ID', 'NAME', 'ROLE', 'CREATED', 'BY', 'WITH', 'EXPIRES', 'LAST USED'], body.items.map(rowOf)))
}

/** @param {Token} token */
function rowOf ({ id, name, role, createdAt, createdBy, createdWith, expiresAt, isExpired, lastUsedAt, lastUsedFrom, apps }) {
  return [id, name, roleOf({ role, apps }), createdAt, createdBy, createdWith ? `token ${createdWith}` : 'admin.token', isExpired ? `${expiresAt} (expired)` : expiresAt, lastUsedAt ? `${lastUsedAt} from ${lastUsedFrom}` : 'never']
}

/** @param {Pick<Token, 'role' | 'apps'>} token */
function roleOf ({ role, apps }) {
  return apps ? `${role} of ${apps.join(', ')}` : role
}

/** @param {Context} context @param {string} [name] */
async function createToken ({ api, options, print, tell }, name) {
  if (name === undefined) throw new DeckError('usage', 'tokens create: expected a name, received none')
  if (options.role === undefined) throw new DeckError('usage', '--role: expected viewer, operator or admin, received none')
  const made = await api.post('/tokens', { name, role: options.role, ...(options.ttl !== undefined && { ttl: options.ttl }), ...(options.apps !== undefined && { apps: namesIn(options.apps) }) })
  if (options.json) return print(jsonText(made))
  tell(`token ${made.id} of ${made.name} (${roleOf(made)}), valid until ${made.expiresAt}; copy it now, it is not shown again`)
  print(made.token)
}

/** @param {Context} context @param {string} [id] */
async function revokeToken ({ api, options, print }, id) {
  const revoked = await api.delete(`/tokens/${checkedId('tokens revoke', id, 'a token')}`)
  const others = revoked.alsoEnded?.length > 0 ? `, and the tokens that it created: ${revoked.alsoEnded.join(', ')}` : ''
  print(options.json ? jsonText(revoked) : `token ${revoked.id} of ${revoked.name} is revoked${others}`)
}

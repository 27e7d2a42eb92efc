import { actionsCommand, idOf, listCommand, orderFor, tableText } from '../cli/actions.ts'
import { jsonText, type Columns } from '../cli/output.ts'
import { misuse, namesIn } from '../cli/usage.ts'
import type { Context } from '../cli/commands.ts'
import type { Token } from './api-tokens.ts'

const TOKENS: Columns<Token> = { ID: 'id', NAME: 'name', ROLE: roleOf, CREATED: 'createdAt', BY: 'createdBy',
  WITH: ({ createdWith }) => createdWith ? `token ${createdWith}` : 'admin.token',
  EXPIRES: ({ expiresAt, isExpired }) => isExpired ? `${expiresAt} (expired)` : expiresAt,
  'LAST USED': ({ lastUsedAt, lastUsedFrom }) => lastUsedAt ? `${lastUsedAt} from ${lastUsedFrom}` : 'never' }

export const tokensCommand = actionsCommand('tokens', { create: createToken,
  revoke: orderFor(idOf('tokens revoke', 'a token'), 'DELETE /tokens/:id', revokedText) },
  listCommand<Token>({ path: '/tokens', textOf: tableText(TOKENS) }))

function revokedText ({ id, name, alsoEnded }: Token & { alsoEnded?: number[] }) {
  const others = alsoEnded?.length ? `, and the tokens that it created: ${alsoEnded.join(', ')}` : ''
  return `token ${id} of ${name} is revoked${others}`
}

function roleOf ({ role, apps }: Token) {
  return apps ? `${role} of ${apps.join(', ')}` : role
}

async function createToken ({ api, options, print, tell }: Context, name?: string) {
  const { role, ttl, apps } = options
  if (name === undefined) throw misuse('tokens create', 'a name')
  if (role === undefined) throw misuse('--role', 'viewer, operator or admin')
  const made = await api.post<Token & { token: string }>('/tokens', { name, role, ttl, apps: namesIn(apps) })
  if (options.json) return print(jsonText(made))
  tell(
    `token ${made.id} of ${made.name} (${
      roleOf(made)
    }), valid until ${made.expiresAt}; copy it now, it is not shown again`
  )
  print(made.token)
}

import { checkedAction, orderFor, type Action } from './actions.ts'
import { formatTable, jsonText } from './output.ts'
import { checkedId, misuse, namesIn } from './usage.ts'
import type { Context } from './commands.ts'
import type { Token } from '../api/tokens.ts'

export async function tokensCommand (context: Context, action?: string, ...subject: string[]) {
  if (action === undefined) return await listTokens(context)
  await checkedAction('tokens', ACTIONS, [action, ...subject]).run(context, ...subject)
}

const ACTIONS: Readonly<Record<string, Action>> = Object.freeze({ create: { run: createToken },
  revoke: {
    run: orderFor((id) => checkedId('tokens revoke', id, 'a token'), (api, id) =>
      api.delete<Token & { alsoEnded: number[] }>(`/tokens/${id}`), ({ id, name, alsoEnded }) =>
      `token ${id} of ${name} is revoked${
        alsoEnded?.length > 0 ? `, and the tokens that it created: ${alsoEnded.join(', ')}` : ''
      }`)
  } })

async function listTokens ({ api, answer }: Context) {
  const body: { items: Token[] } = await api.get('/tokens')
  answer(body,
    () => formatTable(['ID', 'NAME', 'ROLE', 'CREATED', 'BY', 'WITH', 'EXPIRES', 'LAST USED'], body.items.map(rowOf)))
}

function rowOf (
  { id, name, role, createdAt, createdBy, createdWith, expiresAt, isExpired, lastUsedAt, lastUsedFrom, apps }: Token
) {
  return [id, name, roleOf({ role, apps }), createdAt, createdBy, createdWith ? `token ${createdWith}` : 'admin.token',
    isExpired ? `${expiresAt} (expired)` : expiresAt, lastUsedAt ? `${lastUsedAt} from ${lastUsedFrom}` : 'never']
}

function roleOf ({ role, apps }: Pick<Token, 'role' | 'apps'>) {
  return apps ? `${role} of ${apps.join(', ')}` : role
}

async function createToken ({ api, options, print, tell }: Context, name?: string) {
  if (name === undefined) throw misuse('tokens create', 'a name')
  if (options.role === undefined) throw misuse('--role', 'viewer, operator or admin')
  const made = await api.post<Token & { token: string }>('/tokens', { name, role: options.role,
    ...(options.ttl !== undefined && { ttl: options.ttl }),
    ...(options.apps !== undefined && { apps: namesIn(options.apps) }) })
  if (options.json) return print(jsonText(made))
  tell(
    `token ${made.id} of ${made.name} (${
      roleOf(made)
    }), valid until ${made.expiresAt}; copy it now, it is not shown again`
  )
  print(made.token)
}

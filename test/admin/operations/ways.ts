import { PREVIEWS } from '../../../server/mcp/previews.ts'
import { rawRequest, startAdmin, type Admin, type Answer } from '../../support/admin.ts'
import { createFakeFleet } from '../../support/fake-fleet.ts'
import type { TestContext } from 'node:test'
import type { Route } from '../../../server/api/form.ts'
import type { Params } from './row.ts'

/** `order`: what is asked for; `tag`, `seen`: the state that the sender has seen, as the API and as a form has it */
export type Order = {
  route: Route,
  path: Params,
  query: Record<string, string>,
  body?: Record<string, unknown>,
  fields?: (body: Record<string, unknown>) => Record<string, string>,
  tag?: string,
  seen?: string,
  headers?: Record<string, string>,
  /** what happens once the sender has seen the state */
  meanwhile?: () => Promise<unknown>
}
/** `code`, `detail`, `change`, `now`: of a refusal */
export type Said = { isDone: boolean, status: number, body?: unknown, code?: string, detail?: string, change?: string,
  now?: string, headers: Answer['headers'] }
/** `token`: of whoever asks; '': a stranger */
export type Asker = { door: Door, token: string }
export type Door = Pick<Admin, 'port' | 'post' | 'signInBy' | 'tokenFor'>
export type Way = {
  name: string,
  /** of the sender, in the history */
  actor: string,
  isFor: (route: Route) => boolean,
  isByForm?: boolean,
  /** codes of refusals that it has others for */
  codes?: Record<string, string>,
  /** whether no operation of a host can be asked for so */
  isOfApp?: boolean,
  /** whether it asks at another host */
  isFromAfar?: boolean,
  ask: (asker: Asker, order: Order) => Promise<Said>
}

const isOfApi = ({ path }: Route) => path.startsWith('/api/v1/')
const hasForm = ({ operation: { form } }: Route) => form !== undefined
const MEMBER = 'web-2'

/** How ada can ask for an operation. */
export const WAYS: readonly Way[] = Object.freeze([{ name: 'the API', actor: 'ada', isFor: () => true, ask: askApi }, {
  name: 'a form',
  actor: 'ada',
  isFor: hasForm,
  isByForm: true,
  ask: askForm
}, {
  name: 'an agent',
  actor: 'ada',
  isFor: ({ operation: { name } }) => name in PREVIEWS,
  isOfApp: true,
  ask: askAgent,
  // It is not told of what it may not do.
  codes: { 'invalid-body': 'invalid-argument', forbidden: 'invalid-argument' }
}, { name: 'another host', actor: 'ada@web-1', isFor: isOfApi, isOfApp: true, isFromAfar: true,
  ask: (asker, { route, ...order }) => askApi(asker, { ...order, route: { ...route, path: pathAt(route) } }) }, {
  name: 'a form of another host',
  actor: 'ada@web-1',
  isFor: (route) => isOfApi(route) && hasForm(route),
  isByForm: true,
  isOfApp: true,
  isFromAfar: true,
  ask: (asker, order) => askForm(asker, { ...order, path: { ...order.path, member: MEMBER } })
}])

/** @returns where another host asks for it */
const pathAt = ({ path }: Route) => path.replace('/api/v1', `/api/v1/fleet/members/${MEMBER}/api`)

/** @returns the admin page of another host, and what makes it ask at a port as a member of its fleet does */
export async function startNeighbour (t: TestContext) {
  const here = await startAdmin(t, { limits: { requests: 1e6 } })
  let there: Pick<Admin['admin'], 'ask'>
  here.deck.fleet = createFakeFleet({ async answer (_member, { headers = {}, ...order }, { actor, role, client }) {
    const name = `${actor}@web-1`
    const { status, headers: { location, 'content-type': type }, body } = await there.ask({ ...order, headers }, { name,
      actor: name, client, role: role === 'admin' ? 'operator' : role, token: null, until: null, via: 'fleet',
      from: 'web-1', bound: 'fleet.accept' }, { maxBytes: 900_000, signal: AbortSignal.timeout(10_000) })
    return { status, headers: { location }, body: /json/.test(String(type)) ? JSON.parse(body) : body }
  } })
  return { ...here, leadTo (admin: Admin['admin']) {
    there = admin
  } }
}

async function askApi ({ door, token }: Asker, order: Order) {
  await order.meanwhile?.()
  return saidOf(await rawRequest(door, requestOf(order, token)))
}

async function askForm ({ door, token }: Asker, { route, ...order }: Order) {
  await order.meanwhile?.()
  return saidOf(await door.post(route.operation.name, fieldsOf(order), { cookie: await door.signInBy(token) }))
}

/** @returns the request of a script */
export function requestOf ({ route: { method, path }, path: params, query, body, tag, headers }: Order, token: string) {
  const search = String(new URLSearchParams(query))
  return { method, path: path.replace(/:(\w+)/g, (_, name) => String(params[name])) + (search && `?${search}`),
    headers: { ...(token && { authorization: `Bearer ${token}` }), ...(tag && { 'if-match': tag }),
      ...(body && { 'content-type': 'application/json' }), ...headers }, body: body && JSON.stringify(body) }
}

/** @returns what a form sends: those of nested objects are named `strategy.surge` */
export function fieldsOf ({ path, query, body = {}, fields, seen }: Omit<Order, 'route'>): Record<string, string> {
  return { ...Object.fromEntries(Object.entries(path).map(([name, value]) => [name, String(value)])), ...query,
    ...(fields ?? flat)(body), ...(seen !== undefined && { seen }) }
}

function flat (body: object, prefix = ''): Record<string, string> {
  return Object.assign({},
    ...Object.entries(body).map(([name, value]) =>
      Object(value) !== value || name === 'data' || Array.isArray(value)
        ? {
          [prefix + name]: typeof value === 'string'
            ? value
            : Array.isArray(value)
            ? value.join(', ')
            : JSON.stringify(value)
        }
        : flat(value, `${prefix}${name}.`)
    ))
}

function saidOf ({ status, text, headers }: Answer): Said {
  const body = /json/.test(String(headers['content-type'])) ? JSON.parse(text) : text
  const { code, detail, change, now } = Object(body)
  return { isDone: status < 400, status, headers, body, ...(status >= 400 && { code, detail, change, now }) }
}

/** A preview first, then its confirmation; either may refuse it. */
async function askAgent (asker: Asker, { route, path, body, meanwhile }: Order): Promise<Said> {
  const preview = await callTool(asker, 'preview_change', { operation: route.operation.name,
    input: { ...path, ...body } })
  if (!preview.isDone) return preview
  await meanwhile?.()
  return await callTool(asker, 'confirm_change', Object(preview.body))
}

async function callTool ({ door, token }: Asker, name: string, input: object): Promise<Said> {
  const { status, headers, json } = await rawRequest(door, { method: 'POST', path: '/mcp?role=admin',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } }) })
  const { result, error } = json<
    { result?: { isError: boolean, content: { text: string }[] }, error?: { message: string } }
  >()
  if (!result) return { isDone: false, status, headers, code: 'invalid-argument', detail: error?.message }
  const [{ text }, data] = result.content
  const [, detail, code] = /^([^]*) \(([\w-]+)\)$/.exec(text) ?? []
  return { isDone: !result.isError, status, headers,
    ...(result.isError ? { code, detail } : { body: JSON.parse(data.text) }) }
}

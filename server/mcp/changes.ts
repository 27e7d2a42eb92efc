import { z } from 'zod'
import { namesIn, neededBy, operationsByName, type Route } from '../api/form.ts'
import { NO_BODY, parseArgument, parseId } from '../api/input.ts'
import { holderOf, roleAllows, type Role } from '../api/roles.ts'
import { DeckError } from '../errors.ts'
import { fixedOf, PREVIEWS } from './previews.ts'
import { lines } from './texts.ts'
import type { Confirmations } from './confirmations.ts'
import type { Tool } from './tools.ts'
import type { Fields } from '../api/endpoint.ts'
import type { Mount } from '../api/openapi.ts'
import type { Preview } from '../api/shapes.ts'

/** of the API of an app */
export type Groups = Mount['groups']

/**
 * Changes of an agent, in two calls: the first says what an operation of the API would do and changes nothing, the
 * second does exactly that, if nothing has moved meanwhile.
 */
export function changeTools ({ groups, confirmations }: { groups: Groups, confirmations: Confirmations },
  role: Role): Record<string, Tool>
{
  const routes = routesFor(role, groups)
  const minutes = Math.round(confirmations.validMs / 60_000)

  return {
    preview_change: { title: 'Preview a change',
      description:
        'Says what an operation of the API would do, and changes nothing. The answer has a confirmation for "confirm_change". Show the preview to the person you work for first.',
      role: 'operator', takesJson: true,
      input: z.strictObject({ operation: z.enum([...routes.keys()]),
        input: z.looseObject({}).describe(
          `its parameters and the fields of its body, in one object: ${[...routes.values()].map(inputText).join('; ')}`
        ) }), async run (api, { operation: name, input }: { operation: string, input: Fields }, auth) {
      const route = routes.get(name) as Route
      const { operation: { summary, headers = {} }, method, path } = route
      const { params, body } = readInput(route, input)
      const tag = headers['If-Match'] && await api.tag(path)
      const { what = [name, ...Object.values(params)].join(' '), facts, pinned, fixed } = await PREVIEWS[name](api, {
        ...params,
        ...body
      })
      const order = { what, method, path: path.replace(/:(\w+)/, (_, subject) => String(params[subject])), fixed,
        ...(route.operation.body && { body: { ...body, ...pinned } }), headers: { ...(tag && { 'if-match': tag }) } }
      const confirmation = confirmations.keep({ order, holder: holderOf(auth), base: api.base })
      return {
        text: `${
          lines([`PREVIEW of ${what}. Nothing has been changed.`, `${summary}.`, ...facts])
        }\n\nTo do it: show this to the person you work for, and if they agree call confirm_change with confirmation "${confirmation}" within ${minutes} minutes.`,
        data: { confirmation }
      }
    } },

    confirm_change: { title: 'Do a previewed change',
      description:
        'Does exactly what preview_change has shown, once. It is refused if somebody has changed the same thing meanwhile. Only call it after a person has agreed to the preview.',
      role: 'operator', isChange: true, isOfPort: true,
      input: z.strictObject({ confirmation: z.string().max(100).describe('as preview_change has returned it') }),
      async run (api, { confirmation }: { confirmation: string }, auth) {
        const found = confirmations.find(confirmation, holderOf(auth))
        if (!found)
          throw new DeckError('not-possible',
            'confirmation: expected one that preview_change has returned to you in the last minutes, received another: preview the change again')
        const isFirst = found.done === null
        const { what, path, fixed, ...order } = found.order
        if (isFirst && fixed !== undefined &&
          fixedOf(
              await api.change<Preview>({ method: 'POST', path: `${found.base}/rollouts/preview`,
                body: { kind: 'deploy', ...order.body } })
            ) !== fixed)
        {
          throw new DeckError('precondition-failed',
            `${what}: expected code, configuration and running release as preview_change has shown them, received others: preview the change again`)
        }
        found.done ??= api.change({ ...order, path: found.base + path })
        const body = await found.done
        return { text: `${isFirst ? 'Done' : 'Done already, and not again'}: ${what}. ${followText(body)}`.trim(),
          data: shortBody(body) }
      } }
  }
}

/** A function of its own, so that the other operations are not kept. */
function routesFor (role: Role, groups: Groups): Map<string, Route> {
  const all = operationsByName([{ base: '/', groups }])
  return new Map(Object.keys(PREVIEWS).flatMap((name) => {
    const route = all.get(name)
    return route?.operation.role && roleAllows(role, route.operation.role) ? [[name, route]] : []
  }))
}

function inputText (route: Route) {
  const { operation: { name, body }, path } = route
  const needed = neededBy(route)
  const fields = Object.entries(body?.shape ?? {}).map(([field, schema]) =>
    `${field}${needed.includes(field) ? '' : '?'} (${z.globalRegistry.get(schema)?.description})`
  )
  return `${name}: ${[...namesIn(path), ...fields].join(', ') || body?.description}`
}

/** @throws {DeckError} invalid-argument, invalid-id */
function readInput ({ operation: { body: schema = NO_BODY, path: named = {} }, path }: Route,
  input: Fields): { params: Fields, body: Fields }
{
  const [subject = ''] = namesIn(path)
  const { [subject]: given, ...rest } = input
  const params = subject === 'id'
    ? { id: parseId(given) }
    : parseArgument(z.strictObject(named), subject === '' ? {} : { [subject]: given }, 'input')
  const body = subject === '' ? input : rest
  parseArgument(schema, body, 'input')
  return { params, body }
}

function followText (body: unknown) {
  const { progress, id } = Object(body)
  return progress && id ? `It is rollout ${id}: follow it by the tool rollouts with id ${id}.` : ''
}

/** @returns without what other tools tell */
function shortBody (body: unknown): unknown {
  const { steps, verdicts, strategy, releases, items, ...rest } = Object(body)
  return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null))
}

import { Router, urlencoded, type NextFunction, type Request, type Response } from 'express'
import { cutEndlessBody } from '../api/body.ts'
import { perform, requireRole, type Fields } from '../api/endpoint.ts'
import { fleetOf } from '../fleet/api.ts'
import { hasNeeded, inputFrom, operationsByName, type Route } from '../api/form.ts'
import { tagOf } from '../api/preconditions.ts'
import { isByBrowser } from '../api/roles.ts'
import { DeckError } from '../errors.ts'
import { refreshMember } from '../fleet/page-member-cache.ts'
import { isFormOfPage } from './form-of-page.ts'
import { pageBefore } from './page-router.ts'
import type { Mount } from '../api/openapi.ts'
import type { AppFleet } from '../fleet/app-fleet.ts'

const MAX_SUBJECTS = 500

const parseUrlencoded = urlencoded({ extended: false, limit: '16kb' })

/**
 * The forms of the pages: `/actions/` and the name of an operation of the API, or several names, of which the first is
 * done that has all of its fields, or the one that the field `operation` names. A form may send several values of the parameter of its path,
 * and the name of a `member` of the fleet that is to do it.
 */
export function formsRouter ({ mounts, basePath, deck }: {
  mounts: readonly Mount[],
  basePath: string,
  /** undefined: forms are for this host alone */
  deck?: { fleet: AppFleet | null }
}) {
  const router = Router()
  /** made by the first form, as most masters get none */
  let operations: ReturnType<typeof operationsByName> | null = null

  router.post('/actions/:names', requireSession, parseForm, async (req, res, next) => {
    operations ??= operationsByName(mounts)
    const fields: Fields = req.body ?? {}
    const { operation: chosen } = fields
    const named = String(req.params.names).split(',').filter((name) => chosen === undefined || name === chosen).flatMap(
      (name) => operations?.get(name) ?? []
    ).filter(({ operation: { form } }) => form !== undefined)
    const route = named.find((each) => hasNeeded(each, fields)) ?? named.at(-1)
    if (!route) return next()
    const { member } = fields
    const page =
      await (deck && member !== undefined && !route.path.includes(':member')
        ? askMember(fleetOf(deck), String(member), route, fields, req)
        : performForAll(route, fields, req, res))
    // htmx redirects by a script, as the policy of our pages lets no form lead elsewhere.
    if (page !== null) res.set('HX-Redirect', basePath + page)
    // There is nothing to swap: the live page shows the result. Without JavaScript the page is loaded anew.
    if (isFormOfPage(req)) res.redirect(303, page === null ? pageBefore(req) : basePath + page)
    else res.status(204).end()
  })
  return router
}

/** @returns the page to which the form leads; null: it stays where it is */
async function performForAll (route: Route, { seen, ...fields }: Fields, req: Request,
  res: Response): Promise<string | null>
{
  const [, subject = 'id'] = /:(\w+)/.exec(route.path) ?? []
  const named = [fields[subject]].flat()
  if (named.length > MAX_SUBJECTS)
    throw new DeckError('invalid-body', `${subject}: expected at most ${MAX_SUBJECTS}, received ${named.length}`)
  return await doForAll(named, (one) => String(one), async (one) => {
    const reply = await perform(route.operation, { req, res, ...inputFrom(route, { ...fields, [subject]: one }),
      ...(seen !== undefined && { seen: tagOf(String(seen)) }) })
    return route.operation.form?.next?.(Object(reply?.body)) ?? null
  })
}

/**
 * Does the work for each item on its own: where it fails for some, it is done for the others all the same.
 * @returns what it has returned for the first item
 * @throws {DeckError} which says for which items it has failed, and why
 */
export async function doForAll<Item, T> (items: readonly Item[], nameOf: (item: Item) => string,
  work: (item: Item) => T | Promise<T>): Promise<T>
{
  const outcomes = await Promise.allSettled(items.map(async (item) => work(item)))
  const failed = outcomes.flatMap((outcome, index) =>
    outcome.status === 'rejected' ? [{ name: nameOf(items[index]), error: outcome.reason }] : []
  )
  if (failed.length === 0) return (outcomes[0] as PromiseFulfilledResult<T>).value
  const [{ error }] = failed
  if (items.length === 1 || !(error instanceof DeckError)) throw error
  const done = items.length - failed.length
  const reasons = failed.slice(0, 3).map(({ name, error: { message } }) => `${name}: ${message}`)
  const more = failed.length > 3 ? `; ${failed.length - 3} more` : ''
  throw new DeckError(error.code, `${reasons.join('; ')}${more}${done > 0 ? `. Done for the other ${done}` : ''}`)
}

/** Asks the member's own API, which checks the request by its own rules. */
async function askMember (fleet: AppFleet, member: string, route: Route, { seen, ...fields }: Fields,
  { auth }: Request): Promise<null>
{
  requireRole(auth, route.operation.role ?? 'viewer')
  const { params, body } = inputFrom(route, fields)
  const path = route.path.replace('/api/v1', '').replace(/:(\w+)/g, (_, name) => encodeURIComponent(params[name] ?? ''))
  await fleet.obtain(member, { method: route.method, path,
    headers: seen === undefined ? {} : { 'if-match': tagOf(String(seen)) },
    body: Object.keys(body).length > 0 ? body : undefined }, auth)
  refreshMember(fleet, member)
  return null
}

export function parseForm (req: Request, res: Response, next: NextFunction) {
  parseUrlencoded(cutEndlessBody(req), res, next)
}

/** Forms are for browsers alone: scripts have the API, which describes what it does. */
export function requireSession (req: Request, _res: unknown, next: () => void) {
  if (!req.auth || !isByBrowser(req.auth))
    throw new DeckError('forbidden', 'Dashboard actions require a session; scripts use /api/v1')
  next()
}

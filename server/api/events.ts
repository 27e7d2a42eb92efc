import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { operation, refuseLimited, type Resource } from './endpoint.ts'
import { pageOf } from './fields.ts'
import { CSV_TYPE, NDJSON_TYPE, sendExport } from './export.ts'
import { eventFilters, pagingFields } from './filters.ts'
import { fullPage } from './full-page.ts'
import { EVENT } from './shapes.ts'
import type { History } from '../../db/history.ts'
import type { Log } from '../system/log.ts'
import type { Auth } from './roles.ts'

export type { Event } from './shapes.ts'

type Parts = { history: Pick<History, 'page' | 'event'>, now: () => number, log: Pick<Log, 'warn'> }

export function eventResources (parts: Parts): Record<string, Resource> {
  return resourcesAt('/events', parts, {
    list: { name: 'listEvents', summary: 'Lists the events of the history, newest first', cli: 'clusterdeck history' },
    get: { name: 'getEvent', summary: 'Returns one event' }
  })
}

/** The host's own history, which names all of its apps. */
export function hostEventResources (parts: Parts): Record<string, Resource> {
  return resourcesAt('/host/events', parts, {
    list: { name: 'listHostEvents',
      summary:
        'Lists the events of the host itself, newest first: apps added, started, stopped, failed and removed, masters, tokens, sign-ins',
      cli: 'clusterdeck history --host' },
    get: { name: 'getHostEvent', summary: 'Returns one event of the host itself' },
    check: (auth) => refuseLimited(auth, 'sees the history of the host')
  })
}

/** `check`: who may see it */
function resourcesAt (path: string, { history, now, log }: Parts,
  { list, get, check = () => {} }: { list: { name: string, summary: string, cli: string },
    get: { name: string, summary: string }, check?: (auth: Auth) => void })
{
  const listQuery = z.strictObject({ ...eventFilters(now), ...pagingFields(1000) })

  return {
    [path]: {
      GET: operation({ ...list,
        description: 'JSON is a page. CSV and NDJSON hold all matching events, or the first `limit`.', role: 'viewer',
        query: listQuery, produces: ['application/json', CSV_TYPE, NDJSON_TYPE],
        answer: { 'application/json': pageOf(EVENT), [CSV_TYPE]: z.string(),
          [NDJSON_TYPE]: z.string().describe('an Event in each line') }, handle ({ query, type, req, res, auth }) {
        check(auth)
        if (type === 'application/json') return fullPage(history, query).then((body) => ({ body }))
        return sendExport({ history, query, type, req, res, log })
      } })
    },

    [`${path}/:id`]: {
      GET: operation({ ...get, role: 'viewer', problems: ['not-found'], answer: EVENT, handle ({ id, auth }) {
        check(auth)
        return { body: findEvent(id) }
      } })
    }
  }

  function findEvent (id: number) {
    const event = history.event(id)
    if (!event) throw new DeckError('not-found', `Event ${id} does not exist or is no longer kept`)
    return event
  }
}

import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { OF_MEMBER } from '../api/ask.ts'
import { operation, refuseLimited, type Resource } from '../api/endpoint.ts'
import { pageOf } from '../api/fields.ts'
import { CSV_TYPE, NDJSON_TYPE, sendExport } from './api-export.ts'
import { eventFilters, pagingFields } from '../api/filters.ts'
import { fleetEvents, ON_HOSTS, type EventFilters } from '../fleet/api-events.ts'
import { fullPage } from '../api/full-page.ts'
import { EVENT } from '../api/shapes.ts'
import { visibleNames, type Auth } from '../api/roles.ts'
import { booleanParam } from '../api/input.ts'
import type { History } from '../../db/history.ts'
import type { Log } from '../system/log.ts'
import type { Apps } from '../host/api-apps.ts'
import type { FleetDeck } from '../fleet/api.ts'

export type { Event } from '../api/shapes.ts'

type Reads = Pick<History, 'page' | 'event'>
type Given = EventFilters & { own?: boolean, member?: string, limit?: number, cursor?: string }
type Parts = { history: Reads, now: () => number, log: Pick<Log, 'warn'> }

const FORMATS = 'JSON is a page. CSV and NDJSON hold all matching events, or the first `limit`.'

export function eventResources ({ history, deck, ...parts }: Parts & { deck: FleetDeck }): Record<string, Resource> {
  return resourcesAt('/events', { ...parts, historyOf: () => history, ofHosts: (query) => fleetEvents(deck, query) }, {
    list: { name: 'listEvents', summary: 'Lists the events of the history, newest first',
      description: `${FORMATS} Of several members it has JSON alone, at most 200 at once: what they have reported to ` +
        'the fleet, also those that are gone. `since` and `until` count when an event came there. A page may have fewer ' +
        'items than `limit` and still a `next`.', cli: 'clusterdeck history' },
    get: { name: 'getEvent', summary: 'Returns one event' },
    more: { member: OF_MEMBER },
    shape: EVENT,
    listed: EVENT.extend(ON_HOSTS).meta({ id: 'ListedEvent' })
  })
}

/** The histories of the apps of a host and its own, as one. Its own names all of its apps. */
export function hostEventResources (
  { apps, history, ...parts }: Parts & { apps: Pick<Apps, 'states' | 'past'> }
): Record<string, Resource> {
  return resourcesAt('/host/events', { ...parts, ofHosts: null, historyOf (auth, isOwn = true) {
    if (isOwn) refuseLimited(auth, 'sees the history of the host')
    return isOwn ? history : { ...history, ...apps.past(visibleNames(apps, auth), !auth.apps) }
  } }, {
    list: { name: 'listHostEvents',
      summary: 'Lists the events of the host and of its apps that run, each with its app, newest first',
      description: FORMATS, cli: 'clusterdeck history' },
    get: { name: 'getHostEvent', summary: 'Returns one event of the host itself' },
    more: {
      own: booleanParam(
        '"true": only those of the host itself: apps added, started, stopped, failed and removed, masters, tokens, sign-ins'
      )
    },
    shape: EVENT.extend({ app: z.string().nullable().optional().describe('null: of the host itself') }).meta({
      id: 'HostEvent'
    })
  })
}

/**
 * `historyOf`: that somebody sees; `isOwn`: not that of apps; `ofHosts`: reads the events of other hosts; `listed`: what
 * the items of a list are, where they have more than one event alone
 */
function resourcesAt (path: string,
  { historyOf, ofHosts, now, log }: Omit<Parts, 'history'> & { historyOf: (auth: Auth, isOwn?: boolean) => Reads,
    ofHosts: ((query: Given & { member: string }) => Promise<object>) | null },
  { list, get, more = {}, shape, listed = shape }: {
    list: { name: string, summary: string, description: string, cli: string },
    get: { name: string, summary: string },
    more?: z.ZodRawShape,
    shape: typeof EVENT,
    listed?: typeof EVENT
  })
{
  const listQuery = z.strictObject({ ...eventFilters(now), ...pagingFields(1000), ...more })

  return {
    [path]: {
      GET: operation({ ...list, role: 'viewer', query: listQuery, produces: ['application/json', CSV_TYPE, NDJSON_TYPE],
        ...(ofHosts && { problems: ['no-fleet', 'fleet-away', 'not-found'] as const }),
        answer: { 'application/json': pageOf(listed), [CSV_TYPE]: z.string(),
          [NDJSON_TYPE]: z.string().describe('an Event in each line') },
        async handle ({ query: given, type, req, res, auth }) {
          const { own, member, ...query }: Given = { own: false, ...given }
          if (ofHosts && member !== undefined) {
            if (type !== 'application/json')
              throw new DeckError('not-acceptable', 'Events of several hosts are JSON alone')
            return { body: await ofHosts({ ...query, member }) }
          }
          const history = historyOf(auth, own)
          if (type === 'application/json') return fullPage(history, query).then((body) => ({ body }))
          return sendExport({ history, query, type, req, res, log })
        } })
    },

    [`${path}/:id`]: {
      GET: operation({ ...get, role: 'viewer', problems: ['not-found'], answer: shape,
        handle: ({ id, auth }) => ({ body: findEvent(historyOf(auth), id) }) })
    }
  }
}

/** @throws {DeckError} not-found */
function findEvent (history: Reads, id: number) {
  const event = history.event(id)
  if (!event) throw new DeckError('not-found', `Event ${id} does not exist or is no longer kept`)
  return event
}

import { z } from 'zod'
import { CAUSES } from '../causes.js'
import { EVENT_TYPES } from '../events/kinds.js'
import { DeckError } from '../errors.js'
import { operation, refuseLimited } from './endpoint.js'
import { ACTOR, COUNT, NUMBER, pageOf, RELEASE_NAME, TIME } from './fields.js'
import { CSV_TYPE, NDJSON_TYPE, sendExport } from './export.js'
import { eventFilters, pagingFields } from './filters.js'
import { fullPage } from './full-page.js'

/** @typedef {z.infer<typeof EVENT>} Event */
/** One event of the history. */
export const EVENT = z.strictObject({
  id: NUMBER.describe('ascending, never used again in this data folder'),
  at: TIME,
  type: z.enum(EVENT_TYPES),
  cause: z.enum(CAUSES).nullable(),
  slot: NUMBER.nullable(),
  worker: NUMBER.nullable(),
  pid: NUMBER.nullable(),
  release: RELEASE_NAME.nullable(),
  rollout: NUMBER.nullable(),
  actor: ACTOR.nullable(),
  code: z.int().nullable(),
  signal: z.string().nullable(),
  uptimeMs: COUNT.nullable(),
  message: z.string().nullable().describe('one sentence for people'),
  detail: z.record(z.string(), z.any()).nullable()
}).meta({ id: 'Event' })

/**
 * @typedef {object} Parts
 * @property {Pick<import('../../db/history.js').History, 'page' | 'event'>} history
 * @property {() => number} now
 * @property {Pick<import('../system/log.js').Log, 'warn'>} log
 */

/** @param {Parts} parts @returns {Record<string, import('./endpoint.js').Resource>} */
export function eventResources (parts) {
  return resourcesAt('/events', parts, {
    list: { name: 'listEvents', summary: 'Lists the events of the history, newest first', cli: 'clusterdeck history' },
    get: { name: 'getEvent', summary: 'Returns one event' }
  })
}

/** The host's own history, which names all of its apps. @param {Parts} parts @returns {Record<string, import('./endpoint.js').Resource>} */
export function hostEventResources (parts) {
  return resourcesAt('/host/events', parts, {
    list: {
      name: 'listHostEvents',
      summary: 'Lists the events of the host itself, newest first: apps added, started, stopped, failed and removed, masters, tokens, sign-ins',
      cli: 'clusterdeck history --host'
    },
    get: { name: 'getHostEvent', summary: 'Returns one event of the host itself' },
    check: (auth) => refuseLimited(auth, 'sees the history of the host')
  })
}

/**
 * @param {string} path @param {Parts} parts
 * @param {{ list: { name: string, summary: string, cli: string }, get: { name: string, summary: string }, check?: (auth: import('./roles.js').Auth) => void }} what  `check`: who may see it
 */
function resourcesAt (path, { history, now, log }, { list, get, check = () => {} }) {
  const listQuery = z.strictObject({ ...eventFilters(now), ...pagingFields(1000) })

  return {
    [path]: {
      GET: operation({
        ...list,
        description: 'JSON is a page. CSV and NDJSON hold all matching events, or the first `limit`.',
        role: 'viewer',
        query: listQuery,
        produces: ['application/json', CSV_TYPE, NDJSON_TYPE],
        answer: { 'application/json': pageOf(EVENT), [CSV_TYPE]: z.string(), [NDJSON_TYPE]: z.string().describe('an Event in each line') },
        handle ({ query, type, req, res, auth }) {
          check(auth)
          if (type === 'application/json') return fullPage(history, query).then((body) => ({ body }))
          return sendExport({ history, query, type, req, res, log })
        }
      })
    },

    [`${path}/:id`]: {
      GET: operation({
        ...get,
        role: 'viewer',
        problems: ['not-found'],
        answer: EVENT,
        handle ({ id, auth }) {
          check(auth)
          return { body: findEvent(id) }
        }
      })
    }
  }

  function findEvent (/** @type {number} */ id) {
    const event = history.event(id)
    if (!event) throw new DeckError('not-found', `Event ${id} does not exist or is no longer kept`)
    return event
  }
}

import { z } from 'zod'
import { CAUSES } from '../causes.js'
import { EVENT_TYPES } from '../events/kinds.js'
import { DeckError } from '../errors.js'
import { operation } from './endpoint.js'
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
 * @param {object} parts
 * @param {Pick<import('../../db/history.js').History, 'page' | 'event'>} parts.history
 * @param {() => number} parts.now
 * @param {Pick<import('../system/log.js').Log, 'warn'>} parts.log
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function eventResources ({ history, now, log }) {
  const listQuery = z.strictObject({ ...eventFilters(now), ...pagingFields(1000) })

  return {
    '/events': {
      GET: operation({
        name: 'listEvents',
        summary: 'Lists the events of the history, newest first',
        description: 'JSON is a page. CSV and NDJSON hold all matching events, or the first `limit`.',
        role: 'viewer',
        cli: 'clusterdeck history',
        query: listQuery,
        produces: ['application/json', CSV_TYPE, NDJSON_TYPE],
        answer: { 'application/json': pageOf(EVENT), [CSV_TYPE]: z.string(), [NDJSON_TYPE]: z.string().describe('an Event in each line') },
        handle ({ query, type, req, res }) {
          if (type === 'application/json') return fullPage(history, query).then((body) => ({ body }))
          return sendExport({ history, query, type, req, res, log })
        }
      })
    },

    '/events/:id': {
      GET: operation({
        name: 'getEvent',
        summary: 'Returns one event',
        role: 'viewer',
        problems: ['not-found'],
        answer: EVENT,
        handle: ({ id }) => ({ body: findEvent(id) })
      })
    }
  }

  function findEvent (/** @type {number} */ id) {
    const event = history.event(id)
    if (!event) throw new DeckError('not-found', `Event ${id} does not exist or is no longer kept`)
    return event
  }
}

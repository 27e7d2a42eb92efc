import { z } from 'zod'
import { DeckError } from '../errors.js'
import { CSV_TYPE, NDJSON_TYPE, sendExport } from './export.js'
import { eventFilters, paging } from './filters.js'
import { fullPage } from './full-page.js'

/**
 * @param {object} parts
 * @param {Pick<import('../../db/history.js').History, 'page' | 'event'>} parts.history
 * @param {() => number} parts.now
 * @param {Pick<import('../admin/app.js').Log, 'warn'>} parts.log
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function eventResources ({ history, now, log }) {
  const listQuery = z.strictObject({ ...eventFilters(now), ...paging(1000) })

  return {
    '/events': {
      GET: {
        query: listQuery,
        produces: ['application/json', CSV_TYPE, NDJSON_TYPE],
        handle ({ query, type, req, res }) {
          if (type === 'application/json') return fullPage(history, query).then((body) => ({ body }))
          return sendExport({ history, query, type, req, res, log })
        }
      }
    },

    '/events/:id': { GET: { handle: ({ id }) => ({ body: findEvent(id) }) } }
  }

  function findEvent (/** @type {number} */ id) {
    const event = history.event(id)
    if (!event) throw new DeckError('not-found', `Event ${id} does not exist or is no longer kept`)
    return event
  }
}

import { z } from 'zod'
import { DeckError } from '../errors.js'
import { CSV_TYPE, NDJSON_TYPE, sendExport } from './export.js'
import { fullPage } from './full-page.js'
import { integerParam, textParam, timeParam } from './input.js'

const ANY_NUMBER = Number.MAX_SAFE_INTEGER
const TYPES = /^[a-z]+(\.([a-z-]+|\*))?(,[a-z]+(\.([a-z-]+|\*))?){0,31}$/

/**
 * The filters of the history, as they come in a query.
 * @param {() => number} now
 */
function eventFilters (now) {
  return {
    type: z.string().max(1000).regex(TYPES).transform((text) => text.split(',')).optional()
      .describe('event types such as worker.exited or worker.*, separated by commas'),
    cause: textParam('a cause such as out-of-memory', /^[a-z][a-z-]{0,63}$/),
    slot: integerParam(1, ANY_NUMBER),
    worker: integerParam(1, ANY_NUMBER),
    release: textParam('a release such as r12', /^[\w.-]{1,64}$/),
    rollout: integerParam(1, ANY_NUMBER),
    since: timeParam(now),
    until: timeParam(now),
    q: z.string().min(1).max(100).optional().describe('1 to 100 characters of a message')
  }
}

/**
 * @param {object} parts
 * @param {any} parts.history
 * @param {() => number} parts.now
 * @param {{ warn: (...args: any[]) => void }} parts.log
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function eventResources ({ history, now, log }) {
  const listQuery = z.strictObject({
    ...eventFilters(now),
    limit: integerParam(1, 1000),
    cursor: textParam('the "next" of an earlier page', /^[\w-]{1,64}$/)
  })

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
    if (!event) throw new DeckError('not-found', `There is no event ${id}; old ones are removed`)
    return event
  }
}

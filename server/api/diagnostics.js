import { createReadStream, statSync } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { DeckError } from '../errors.js'

const MAX_PROFILE_MS = 60_000
const BINARY = 'application/octet-stream'

const START_BODY = z.strictObject({
  kind: z.enum(['cpu-profile', 'heap-snapshot', 'heap-statistics', 'report']).describe('"cpu-profile", "heap-snapshot", "heap-statistics" or "report"'),
  durationMs: z.int().min(100).max(MAX_PROFILE_MS).optional().describe(`an integer from 100 to ${MAX_PROFILE_MS}: how long to profile`)
})

/**
 * A look into one worker, and the files that come of it.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'diagnostics'> }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function diagnosticsResources ({ deck }) {
  return {
    '/workers/:id/diagnostics': {
      POST: {
        body: START_BODY,
        handle ({ id, body, auth }) {
          const item = deck.diagnostics.start({ worker: id, kind: body.kind, durationMs: body.durationMs, actor: auth.actor })
          return { status: 202, headers: { Location: `/api/v1/diagnostics/${item.id}` }, body: item }
        }
      }
    },

    '/diagnostics': { GET: { handle: () => ({ body: { items: deck.diagnostics.list() } }) } },

    '/diagnostics/:id': {
      GET: { handle: ({ id }) => ({ body: find(id) }) },
      DELETE: {
        handle ({ id, auth }) {
          deck.diagnostics.remove(id, auth.actor)
          return { body: {} }
        }
      }
    },

    '/diagnostics/:id/file': {
      GET: {
        produces: [BINARY, 'application/json'],
        async handle ({ id, req, res, auth }) {
          const item = find(id)
          const found = deck.diagnostics.file(id, auth.actor)
          const stat = found && statSync(found.file, { throwIfNoEntry: false })
          if (!found || !stat) throw new DeckError('not-found', `Diagnostics ${id} have no file (${item.state})`)
          res.set({ 'Content-Type': BINARY, 'Content-Length': String(stat.size), 'Content-Disposition': `attachment; filename="${found.name}"`, 'Cache-Control': 'no-store' })
          if (req.method === 'HEAD') res.end()
          // Whoever goes away in the middle has ended it.
          else await pipeline(createReadStream(found.file), res).catch(() => res.destroy())
          return undefined
        }
      }
    }
  }

  function find (/** @type {number} */ id) {
    const item = deck.diagnostics.get(id)
    if (!item) throw new DeckError('not-found', `Diagnostics ${id} do not exist`)
    return item
  }
}

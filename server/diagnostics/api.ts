import { createReadStream, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { DeckError } from '../errors.ts'
import { created, operation, type Resource } from '../api/endpoint.ts'
import { HOT_FUNCTIONS, hotFunctions, type Looked } from './api-hot-functions.ts'
import { listOf } from '../api/fields.ts'
import { DIAGNOSTICS_KIND, DIAGNOSTICS, type Diagnostic as Diagnostics } from '../api/shapes.ts'

const MAX_PROFILE_MS = 60_000
/** The master reads it in one turn of its event loop. */
const MAX_READ_BYTES = 32 * 1024 * 1024
const BINARY = 'application/octet-stream'

export type { Diagnostics }
type Deck = Pick<import('../deck.ts').Deck, 'diagnostics' | 'crashes' | 'releases'>

const START_BODY = z.strictObject({
  kind: DIAGNOSTICS_KIND.describe('"cpu-profile", "heap-snapshot", "heap-statistics" or "report"'),
  durationMs: z.int().min(100).max(MAX_PROFILE_MS).optional().describe(
    `an integer from 100 to ${MAX_PROFILE_MS}: how long to profile`
  )
}).meta({ examples: [{ kind: 'cpu-profile', durationMs: 10_000 }] })

export function diagnosticsResources ({ deck }: { deck: Deck }): Record<string, Resource> {
  return {
    '/workers/:id/diagnostics': {
      POST: operation({ name: 'startDiagnostics', form: {},
        summary: 'Takes a profile, a snapshot or a report of one worker', role: 'operator',
        cli: 'clusterdeck diagnose {id} --kind {kind}', body: START_BODY, status: 202, location: true,
        problems: ['not-found', 'not-possible', 'diagnostics-running', 'data-dir-unusable'], answer: DIAGNOSTICS,
        handle ({ id, body, auth }) {
          const item = deck.diagnostics.start({ worker: id, ...body, actor: auth.actor })
          return created(`/diagnostics/${item.id}`, item)
        } })
    },

    '/diagnostics': {
      GET: operation({ name: 'listDiagnostics', summary: 'Lists the diagnostics, newest first', role: 'viewer',
        answer: listOf(DIAGNOSTICS), handle: () => ({ body: { items: deck.diagnostics.list() } }) })
    },

    '/diagnostics/:id': {
      GET: operation({ name: 'getDiagnostics', summary: 'Returns one of the diagnostics', role: 'viewer',
        problems: ['not-found'], answer: DIAGNOSTICS, handle: ({ id }) => ({ body: findDiagnostic(id) }) }),
      DELETE: operation({ name: 'deleteDiagnostics', summary: 'Removes diagnostics and their file', role: 'admin',
        problems: ['not-found', 'diagnostics-running'], answer: z.strictObject({}), handle ({ id, auth }) {
        deck.diagnostics.remove(id, auth.actor)
        return { body: {} }
      } })
    },

    '/diagnostics/:id/functions': {
      GET: operation({ name: 'getHotFunctions',
        summary:
          'Returns where the time of a CPU profile went: the functions that were busiest, with the lines of their source',
        role: 'operator', problems: ['not-found', 'not-possible'], answer: HOT_FUNCTIONS,
        handle: async ({ id, auth }) => ({ body: (await lookIntoProfile(deck, findDiagnostic(id), auth.actor)).hot }) })
    },

    '/diagnostics/:id/file': {
      GET: operation({ name: 'getDiagnosticsFile', summary: 'Downloads the file of finished diagnostics',
        description: 'A heap snapshot holds everything that the app has in memory, also secrets.', role: 'admin',
        produces: [BINARY, 'application/json'], problems: ['not-found'], answer: { [BINARY]: z.file() },
        async handle ({ id, req, res, auth }) {
          const item = findDiagnostic(id)
          const found = deck.diagnostics.file(id, auth.actor)
          const stat = found && statSync(found.file, { throwIfNoEntry: false })
          if (!found || !stat) throw new DeckError('not-found',
              `Diagnostics ${id} have no file: they are ${item.state}`)
          res.set({ 'Content-Type': BINARY, 'Content-Length': String(stat.size),
            'Content-Disposition': `attachment; filename="${found.name}"`, 'Cache-Control': 'no-store' })
          if (req.method === 'HEAD') res.end()
          // The client has ended the download.
          else await pipeline(createReadStream(found.file), res).catch(() => res.destroy())
          return undefined
        } })
    }
  }

  function findDiagnostic (id: number) {
    const item = deck.diagnostics.get(id)
    if (!item) throw new DeckError('not-found', `Diagnostics ${id} do not exist`)
    return item
  }
}

/** Where the time of a CPU profile went. @throws {DeckError} not-possible: it is none, or not whole */
export async function lookIntoProfile (deck: Deck, item: Diagnostics, actor: string): Promise<Looked> {
  const { id, kind, state, bytes } = item
  const found = deck.diagnostics.file(id, actor)
  if (kind !== 'cpu-profile' || !found)
    throw new DeckError('not-possible',
      `diagnostics ${id}: expected a CPU profile that is done, received a ${kind} that is ${state}`)
  if (Number(bytes) > MAX_READ_BYTES)
    throw new DeckError('not-possible',
      `diagnostics ${id}: its file is larger than ${MAX_READ_BYTES} bytes: take a shorter profile`)
  return hotFunctions(await readFile(found.file, 'utf8'), item, deck)
}

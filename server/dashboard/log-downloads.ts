import { queryOf } from './page-router.ts'
import type { Request, Router } from 'express'
import type { FileType } from '../logs/page.ts'

const FILES: readonly [string, FileType, string][] = [['/logs.txt', 'text', 'text/plain'], ['/logs.ndjson', 'ndjson',
  'application/x-ndjson']]

/** Serves the lines that a page of logs shows as files. A link cannot ask for a format as callers of the API do. */
export function serveLogFiles (router: Router,
  fileOf: (req: Request, asked: { params: URLSearchParams, type: FileType }) => Promise<string>)
{
  for (const [path, type, mediaType] of FILES) {
    router.get(path, async (req, res) => {
      const text = await fileOf(req, { params: queryOf(req), type })
      res.set({ 'Content-Type': `${mediaType}; charset=utf-8`,
        'Content-Disposition': `attachment; filename="clusterdeck-${path.slice(1)}"` }).end(text)
    })
  }
}

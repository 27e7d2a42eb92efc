import { Router, type NextFunction, type Request, type Response } from 'express'
import { nearestName } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import { toDeckError } from '../problem.ts'
import { isFormOfPage } from './form-of-page.ts'
import { isAtLoopback } from './page-address.ts'
import { powersOf, type Powers } from './powers.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Place } from '../../public/places.ts'
import type { LivePage, Model } from './follow-page.ts'
import type { Document, Mount } from '../api/openapi.ts'
import type { Sessions, TokenRegistry } from '../access/api-tokens.ts'
import type { Log } from '../system/log.ts'

/** What the pages of every site have in common: how they are asked for, and how their errors look. */
type Views = Pick<import('./views.ts').Views, 'render'>
/** What the routers of an app and of a host are given alike. */
export type RouterParts = {
  views: import('./views.ts').Views,
  mounts: readonly Mount[],
  tokens: TokenRegistry,
  sessions: Sessions,
  /** the API, as OpenAPI */
  describe: () => Document
}
export type Page<Asked> = Omit<LivePage<Asked>, 'model'> & {
  /** a file of views/pages */
  view: string,
  model: (asked: Asked) => Model | Promise<Model>,
  /** it has a form, which also sends empty fields: the address bar shows `canonicalUrl` of the model instead */
  hasFilters?: boolean,
  /** it is loaded into another page, and has a frame of its own only for whoever visits it by its address */
  isPart?: boolean
}
/** `path`: below the base path */
type Visit = { now: () => number, can: Powers, isAtLoopback: boolean, params: URLSearchParams, path: string,
  id: string }

export function pagesRouter<Sources extends object> (pages: readonly Page<Sources & Visit>[],
  { sources, frame, views, now }: {
    /** what the models of one request are made of */
    sources: () => Sources,
    /** what stands around each, made of the same */
    frame: (asked: Sources & Visit) => object,
    views: Views,
    now: () => number
  })
{
  const router = Router()
  for (const { path, view, model, hasFilters, isPart } of pages) {
    router.get(path, async (req, res) => {
      const can = powersOf(req.auth)
      const asked = { ...sources(), now, can, isAtLoopback: isAtLoopback(req), params: queryOf(req), path: req.path,
        id: String(req.params.id ?? req.params.name ?? '') }
      const shown = await model(asked)
      if (hasFilters && req.get('HX-Request'))
        res.set('HX-Push-Url', shown.problem ? req.originalUrl : shown.canonicalUrl)
      res.status(shown.status ?? shown.problem?.status ?? 200).type('html').send(
        views.render(`pages/${isPart && isVisit(req) && !req.get('HX-Request') ? 'framed' : view}`, { now: now(),
          ...frame(asked), can, view, ...shown })
      )
    })
  }
  return router
}

/** A browser gets an error as a page; other clients get problem details from elsewhere. */
export function createErrorPage ({ views, now, log, frame, places }: {
  views: Views,
  now: () => number,
  log: Log,
  /** what stands around every page */
  frame: (asked: { can: Powers }) => object,
  /** where somebody may want to go instead */
  places: (asked: { can: Powers }) => readonly Place[]
}) {
  return { refuseUnknown (req: Request, _res: Response, next: NextFunction) {
    if (!isVisit(req)) return next()
    throw new DeckError('not-found', `No such page: ${req.path.slice(0, 200)}`)
  }, onError (error: unknown, req: Request, res: Response, next: NextFunction) {
    if (!(isVisit(req) || isFormOfPage(req)) || res.headersSent) return next(error)
    show(req, res, error)
  }, show }

  function show (req: IncomingMessage, res: ServerResponse, error: unknown, more: object = {}) {
    const { status, title, message, code } = toDeckError(error)
    if (code === 'internal') log.error({ err: error }, 'a page of the dashboard failed')
    const can = powersOf(req.auth)
    const html = views.render('pages/error', { now: now(), status, title, message, can, ...around(req, can), ...more })
    res.statusCode = status
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.setHeader('Content-Length', Buffer.byteLength(html))
    res.end(html)
  }

  /** Whoever is signed in can go on from there; to others a page tells nothing of the site. */
  function around (req: IncomingMessage, can: Powers) {
    if (!req.auth) return {}
    try {
      return { ...frame({ can }), isInside: true, near: nearestPlace(String(req.url), places({ can })) }
    } catch (error) {
      log.warn({ err: error }, 'a page about an error is shown without what stands around it')
      return {}
    }
  }
}

/** Shorter words are near to too many others. */
const MIN_GUESSED_CHARS = 5
/** Pages that no menu names, by how their addresses begin: the page that lists them. */
const LISTS: Readonly<Record<string, string>> = Object.freeze({ releases: '/deploys', rollouts: '/deploys',
  compare: '/deploys', workers: '/' })

export function nearestPlace (path: string, places: readonly Place[]): Place | null {
  const [, first = ''] = /^\/([\w-]{1,60})/.exec(path) ?? []
  const names = new Map(
    places.flatMap((place) => [place.href.slice(1), place.label.toLowerCase()].map((name) => [name, place]))
  )
  if (first === '') return null
  const known = Object.hasOwn(LISTS, first) ? LISTS[first].slice(1) : first
  return names.get(known) ??
    (known.length < MIN_GUESSED_CHARS ? null : names.get(String(nearestName(known, names.keys()))) ?? null)
}

export function isVisit ({ method, url, headers }: IncomingMessage) {
  return method === 'GET' && !String(url).startsWith('/api/') && String(headers.accept).includes('text/html')
}

/** The page that has sent the form, as a path: never one of another site. */
export function pageBefore ({ headers: { referer: from = '' } }: IncomingMessage): string {
  const { pathname, search } = new URL(URL.canParse(from) ? from : 'http://localhost/')
  return pathname.replace(/^\/+/, '/') + search
}

/** `req`: the raw query: express may have been told to parse it in its own way */
export function queryOf (req: Request) {
  return new URL(req.originalUrl, 'http://localhost').searchParams
}

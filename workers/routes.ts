import { createRequire } from 'node:module'
import diagnostics from 'node:diagnostics_channel'
import path from 'node:path'
import { BUCKETS, toSparse } from './histogram.ts'
import { foldedHash, foldPath, withoutQuery } from './folded-path.ts'
import { MAX_ROUTES, MAX_TARGET_CHARS, NOT_FOUND_ROUTE, OTHER_ROUTES, type RouteReport,
  type SlowRequest } from './protocol.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'

export type Routes = ReturnType<typeof createRoutes>
/**
 * What is used of the frameworks: Express 4 and 5 and restify leave the matched route on the request, `@koa/router` on
 * Koa's context.
 */
type MatchedRoute = { path?: unknown }
type Request = IncomingMessage & { route?: MatchedRoute, baseUrl?: unknown, originalUrl?: unknown }
type KoaContext = { _matchedRoute?: unknown }
type Response = ServerResponse & { [TEMPLATE]?: unknown, [CONTEXT]?: KoaContext }
type FastifyHook = (request: { routeOptions?: { url?: unknown } }, reply: { raw: Response }, done: () => void) => void
type Fastify = { addHook: (name: 'onRequest', hook: FastifyHook) => unknown }

const TEMPLATE = Symbol('clusterdeck.route')
const CONTEXT = Symbol('clusterdeck.context')
const KOA_FILE = `${path.sep}${path.join('koa', 'lib', 'application.js')}`
/** A template that fits any path tells nothing of what was asked for. */
const CATCH_ALL = /^\/?[{(]*\.?\*\w*[)}]*$/
/** A template with one of these fits paths with different numbers of segments. */
const NOT_COUNTED = /[*?{(]/
const MAX_ROUTE_CHARS = 150
const NOT_FOUND = 404
const FIRST_ERROR = 500

/**
 * Counts what was answered by route: the method, and the template that the app's framework has matched, else the path
 * with its ids folded. A name has no query. Answers of one route are found by what they share, so that counting one
 * makes no string. `now`: wall clock, ms since the epoch.
 */
export function createRoutes ({ now = Date.now }: { now?: () => number } = {}) {
  /** By method, and by template or by foldedHash of the path. */
  const known: Map<string, { byTemplate: Map<string, Route>, byPath: Map<number, Route> }> = new Map()
  /** The last answer of each route of Express, whose object stays the same. */
  const ofExpress: WeakMap<object, { method: string, baseUrl: unknown, route: Route }> = new WeakMap()
  /** those that have answered since the last report */
  let active: Route[] = []
  const others = new Route(OTHER_ROUTES)
  let count = 0
  let hasSoughtKoa = false

  // Fastify leaves nothing on the answer itself.
  diagnostics.subscribe('fastify.initialization', onFastify)

  return {
    /** Call it once the app listens: then it has loaded its framework. */
    begin () {
      if (hasSoughtKoa) return
      hasSoughtKoa = true
      markContextsOfKoa()
    },

    /** `response`: that has been sent; `bucket`: of the latency `ms` */
    count (response: Response, ms: number, bucket: number) {
      const route = routeOf(response)
      add(route, response.statusCode, bucket)
      keepSlowest(route, ms, response.statusCode, response.req.method, urlOf(response.req))
    },

    /** `target`: of a stream of HTTP/2 */
    countStream ({ method, path }: { method: string, path: string }, status: number, ms: number, bucket: number) {
      const route = routeByPath(method, path, status)
      add(route, status, bucket)
      keepSlowest(route, ms, status, method, path)
    },

    /** @returns what has been answered since the last call */
    take (): RouteReport[] {
      const taken = active.map((route) => route.take())
      active = []
      return taken
    },

    stop () {
      diagnostics.unsubscribe('fastify.initialization', onFastify)
    }
  }

  function add (route: Route, status: number, bucket: number) {
    if (!route.isActive) {
      route.isActive = true
      active.push(route)
    }
    route.latency[bucket]++
    if (status >= FIRST_ERROR) route.errors++
  }

  /** An app may have put anything in place of the method, the url and the status. */
  function keepSlowest (route: Route, ms: number, status: number, method: unknown, url: unknown) {
    if (route.slowest !== undefined && ms <= route.slowest.ms) return
    route.slowest = { ms, at: now(), status: Math.max(0, status | 0), method: String(method).slice(0, MAX_TARGET_CHARS),
      path: withoutQuery(String(url)).slice(0, MAX_TARGET_CHARS) }
  }

  function routeOf (response: Response): Route {
    const request: Request = response.req
    const method = request.method ?? ''
    const template = response[TEMPLATE] ?? response[CONTEXT]?._matchedRoute
    if (isTemplate(template)) return routeBy(method, template)
    const { route, baseUrl } = request
    if (typeof route !== 'object' || route === null) return routeByPath(method, urlOf(request), response.statusCode)
    const last = ofExpress.get(route)
    if (last !== undefined && last.method === method && last.baseUrl === baseUrl) return last.route
    if (!isTemplate(route.path)) return routeByPath(method, urlOf(request), response.statusCode)
    const { path, isExact } = templateOf(request, route.path)
    const found = routeBy(method, path)
    if (isExact) ofExpress.set(route, { method, baseUrl, route: found })
    return found
  }

  function routeByPath (method: string, url: string, status: number): Route {
    if (status === NOT_FOUND) return routeBy(method, NOT_FOUND_ROUTE)
    const { byPath } = routesOf(method)
    const hash = foldedHash(url)
    const found = byPath.get(hash)
    if (found !== undefined) return found
    if (count >= MAX_ROUTES) return others
    const route = routeBy(method, foldPath(url))
    byPath.set(hash, route)
    return route
  }

  function routeBy (method: string, template: string): Route {
    const { byTemplate } = routesOf(method)
    const found = byTemplate.get(template)
    if (found !== undefined) return found
    if (count >= MAX_ROUTES) return others
    count++
    const route = new Route(`${method} ${shortened(template)}`)
    byTemplate.set(template, route)
    return route
  }

  function routesOf (method: string) {
    let routes = known.get(method)
    if (routes === undefined) known.set(method, routes = { byTemplate: new Map(), byPath: new Map() })
    return routes
  }
}

function onFastify (message: unknown) {
  const { fastify } = message as { fastify: Fastify }
  fastify.addHook('onRequest', markReply)
}

/** What has been answered of one route since the last report. */
class Route {
  name: string
  /** It has answered something since. */
  isActive = false
  errors = 0
  latency = new Uint32Array(BUCKETS)
  slowest: SlowRequest | undefined = undefined

  constructor (name: string) {
    this.name = name
  }

  take (): RouteReport {
    const taken = { route: this.name, errors: this.errors, latency: toSparse(this.latency), slowest: this.slowest }
    this.isActive = false
    this.errors = 0
    this.latency.fill(0)
    this.slowest = undefined
    return taken
  }
}

function markReply (request: Parameters<FastifyHook>[0], { raw }: Parameters<FastifyHook>[1],
  done: Parameters<FastifyHook>[2]): ReturnType<FastifyHook>
{
  // Undefined where no route has matched.
  raw[TEMPLATE] = request.routeOptions?.url
  done()
}

/** Koa's context has the route, and the answer has no way to it. */
function markContextsOfKoa () {
  const { cache } = createRequire(process.execPath)
  for (const file of Object.keys(cache)) {
    const prototype = file.endsWith(KOA_FILE) ? cache[file]?.exports?.prototype : null
    const createContext = prototype?.createContext
    if (typeof createContext !== 'function') continue
    prototype.createContext = function (request: Request, response: Response) {
      const context = createContext.call(this, request, response)
      response[CONTEXT] = context
      return context
    }
  }
}

/**
 * An error leaves the router in which it happened, and `baseUrl` is that of the app again when its answer is sent. What
 * comes before the route's own part of the path is read from the path then. `own`: template of the route. Returns
 * `isExact`: it is the same for each request of this route and `baseUrl`.
 */
function templateOf (request: Request, own: string): { path: string, isExact: boolean } {
  const url = withoutQuery(urlOf(request))
  if (typeof request.baseUrl === 'string' && request.baseUrl !== '')
    return { path: joined(foldPath(request.baseUrl), own), isExact: true }
  const hidden = NOT_COUNTED.test(own) ? 0 : segmentsOf(url).length - segmentsOf(own).length
  return hidden > 0
    ? { path: joined(foldPath(`/${segmentsOf(url).slice(0, hidden).join('/')}`), own), isExact: false }
    : { path: joined('', own), isExact: true }
}

function isTemplate (path: unknown): path is string {
  return typeof path === 'string' && !CATCH_ALL.test(path)
}

function joined (base: string, own: string) {
  const path = base + (own.startsWith('/') ? own : `/${own}`)
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

function segmentsOf (path: string) {
  return path.split('/').filter((segment) => segment !== '')
}

/** Routers of Express cut `url`. */
function urlOf ({ originalUrl, url }: Request) {
  return typeof originalUrl === 'string' ? originalUrl : url ?? ''
}

function shortened (template: string) {
  return template.length <= MAX_ROUTE_CHARS ? template : `${template.slice(0, MAX_ROUTE_CHARS)}…`
}

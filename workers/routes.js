import { createRequire } from 'node:module'
import diagnostics from 'node:diagnostics_channel'
import path from 'node:path'
import { BUCKETS, toSparse } from './histogram.js'
import { foldedHash, foldPath, withoutQuery } from './folded-path.js'
import { MAX_ROUTES, NOT_FOUND_ROUTE, OTHER_ROUTES } from './protocol.js'

/** @typedef {ReturnType<typeof createRoutes>} Routes */
/**
 * What is used of the frameworks: Express 4 and 5 and restify leave the matched route on the request, @koa/router on Koa's context.
 * @typedef {{ path?: unknown }} MatchedRoute
 * @typedef {import('node:http').IncomingMessage & { route?: MatchedRoute, baseUrl?: unknown, originalUrl?: unknown }} Request
 * @typedef {{ _matchedRoute?: unknown }} KoaContext
 * @typedef {import('node:http').ServerResponse & { [TEMPLATE]?: unknown, [CONTEXT]?: KoaContext }} Response
 * @typedef {(request: { routeOptions?: { url?: unknown } }, reply: { raw: Response }, done: () => void) => void} FastifyHook
 * @typedef {{ addHook: (name: 'onRequest', hook: FastifyHook) => unknown }} Fastify
 */

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
 * Counts what was answered by route: the method, and the template that the app's framework has matched, else the path with its ids
 * folded. A name has no query. Answers of one route are found by what they share, so that counting one makes no string.
 */
export function createRoutes () {
  /** By method, and by template or by foldedHash of the path. @type {Map<string, { byTemplate: Map<string, Route>, byPath: Map<number, Route> }>} */
  const known = new Map()
  /** The last answer of each route of Express, whose object stays the same. @type {WeakMap<object, { method: string, baseUrl: unknown, route: Route }>} */
  const ofExpress = new WeakMap()
  /** @type {Route[]} those that have answered since the last report */
  let active = []
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

    /** @param {Response} response  that has been sent @param {number} bucket  of its latency */
    count (response, bucket) {
      add(routeOf(response), response.statusCode, bucket)
    },

    /** @param {{ method: string, path: string }} target  of a stream of HTTP/2 @param {number} status @param {number} bucket */
    countStream ({ method, path }, status, bucket) {
      add(routeByPath(method, path, status), status, bucket)
    },

    /** @returns {import('./protocol.js').RouteReport[]} what has been answered since the last call */
    take () {
      const taken = active.map((route) => route.take())
      active = []
      return taken
    },

    stop () {
      diagnostics.unsubscribe('fastify.initialization', onFastify)
    }
  }

  /** @param {Route} route @param {number} status @param {number} bucket */
  function add (route, status, bucket) {
    if (!route.isActive) {
      route.isActive = true
      active.push(route)
    }
    route.latency[bucket]++
    if (status >= FIRST_ERROR) route.errors++
  }

  /** @param {Response} response @returns {Route} */
  function routeOf (response) {
    /** @type {Request} */
    const request = response.req
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

  /** @param {string} method @param {string} url @param {number} status @returns {Route} */
  function routeByPath (method, url, status) {
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

  /** @param {string} method @param {string} template @returns {Route} */
  function routeBy (method, template) {
    const { byTemplate } = routesOf(method)
    const found = byTemplate.get(template)
    if (found !== undefined) return found
    if (count >= MAX_ROUTES) return others
    count++
    const route = new Route(`${method} ${shortened(template)}`)
    byTemplate.set(template, route)
    return route
  }

  /** @param {string} method */
  function routesOf (method) {
    let routes = known.get(method)
    if (routes === undefined) known.set(method, routes = { byTemplate: new Map(), byPath: new Map() })
    return routes
  }
}

/** @param {unknown} message */
function onFastify (message) {
  const { fastify } = /** @type {{ fastify: Fastify }} */ (message)
  fastify.addHook('onRequest', markReply)
}

/** What has been answered of one route since the last report. */
class Route {
  /** It has answered something since. */
  isActive = false
  errors = 0
  latency = new Uint32Array(BUCKETS)

  /** @param {string} name */
  constructor (name) { this.name = name }

  /** @returns {import('./protocol.js').RouteReport} */
  take () {
    const taken = { route: this.name, errors: this.errors, latency: toSparse(this.latency) }
    this.isActive = false
    this.errors = 0
    this.latency.fill(0)
    return taken
  }
}

/** @type {FastifyHook} */
function markReply (request, { raw }, done) {
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
    prototype.createContext = function (/** @type {Request} */ request, /** @type {Response} */ response) {
      const context = createContext.call(this, request, response)
      response[CONTEXT] = context
      return context
    }
  }
}

/**
 * An error leaves the router in which it happened, and `baseUrl` is that of the app again when its answer is sent. What comes before
 * the route's own part of the path is read from the path then.
 * @param {Request} request @param {string} own  template of the route
 * @returns {{ path: string, isExact: boolean }} `isExact`: it is the same for each request of this route and `baseUrl`
 */
function templateOf (request, own) {
  const url = withoutQuery(urlOf(request))
  if (typeof request.baseUrl === 'string' && request.baseUrl !== '') return { path: joined(foldPath(request.baseUrl), own), isExact: true }
  const hidden = NOT_COUNTED.test(own) ? 0 : segmentsOf(url).length - segmentsOf(own).length
  return hidden > 0 ? { path: joined(foldPath(`/${segmentsOf(url).slice(0, hidden).join('/')}`), own), isExact: false } : { path: joined('', own), isExact: true }
}

/** @param {unknown} path @returns {path is string} */
function isTemplate (path) {
  return typeof path === 'string' && !CATCH_ALL.test(path)
}

/** @param {string} base @param {string} own */
function joined (base, own) {
  const path = base + (own.startsWith('/') ? own : `/${own}`)
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
}

/** @param {string} path */
function segmentsOf (path) {
  return path.split('/').filter((segment) => segment !== '')
}

/** Routers of Express cut `url`. @param {Request} request */
function urlOf ({ originalUrl, url }) {
  return typeof originalUrl === 'string' ? originalUrl : url ?? ''
}

/** @param {string} template */
function shortened (template) {
  return template.length <= MAX_ROUTE_CHARS ? template : `${template.slice(0, MAX_ROUTE_CHARS)}…`
}

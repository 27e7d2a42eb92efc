import type { Place } from './sites.ts'

/** Where the requests to a host belong: to the host itself or to one of its apps. */

/** `/apps/shop/logs` is a page of shop, `/api/v1/apps/shop/logs` is the same as `/apps/shop/api/v1/logs`. */
const OF_APP = /^(\/api\/v1)?\/apps\/([A-Za-z\d][\w.-]{0,59})(?=$|[/?])(.*)$/s
/** What the host does with an app. */
const BY_HOST = /^\/(?:start|stop|variables)(?=$|\?)/
const HEALTH = /^\/healthz(?=$|\?)/
const READINESS = /^\/readyz(?=$|\?)/
/** The whole port has these once. */
const OF_PORT = /^\/(?:sign-in|sign-out|assets\/[^?]*)(?=$|\?)/
/** The host answers these calls itself; every other short path of the API may mean the only app. */
const HOST_CALL = /^\/api\/v1\/(?:host|apps|tokens|sign-in-links|openapi\.json)(?=$|[/?])/

const OF_HOST = /^\/(?:api\/v1\/(?:host|apps)|apps\/[^/?]+\/(?:healthz|readyz))(?=$|[/?])/

/** `url`: below the base path of the port */
export function locate (url: string): Place {
  const [, api, name, rest] = OF_APP.exec(url) ?? []
  if (name === undefined) return place(url, url, null)
  if (api) return rest.startsWith('/') ? inApi(url, name, rest) : place(url, url, null)
  if (rest.startsWith('/api/v1/')) return inApi(url, name, rest.slice('/api/v1'.length))
  const inside = rest.startsWith('/') ? rest : `/${rest}`
  // The host answers both, so that they open no site. The guard knows a probe, which is for anyone, by its short path.
  if (READINESS.test(inside)) return place(url, url, null)
  if (HEALTH.test(inside)) return { ...place(url, inside, null), goesTo: url }
  if (OF_PORT.test(inside)) return place(url, withNext(inside, `/apps/${name}/`), null)
  return place(url, inside, name)
}

/** Tells whether the host answers a path where all other paths of the port belong to its only app. */
export function isOfHost ({ goesTo }: Place): boolean {
  return OF_HOST.test(goesTo)
}

/** A short path of the API means the only app. `only`: its name. */
export function shortPlace (place: Place, only: string): Place {
  if (place.app !== null || !place.url.startsWith('/api/v1/') || HOST_CALL.test(place.url)) return place
  return inApi(place.whole, only, place.url.slice('/api/v1'.length))
}

/** `rest`: below /api/v1 of the app */
function inApi (whole: string, name: string, rest: string): Place {
  return BY_HOST.test(rest) ? place(whole, `/api/v1/apps/${name}${rest}`, null) : place(whole, `/api/v1${rest}`, name)
}

function place (whole: string, url: string, app: string | null): Place {
  return { whole, url, goesTo: url, app }
}

/** Who signs in at an app comes to its pages. */
function withNext (url: string, next: string) {
  if (!/^\/sign-in(?=$|\?)/.test(url) || /[?&]next=/.test(url)) return url
  return `${url}${url.includes('?') ? '&' : '?'}next=${encodeURIComponent(next)}`
}

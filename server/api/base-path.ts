import type { ServerResponse } from 'node:http'

/**
 * Serves a site below a path, of a proxy such as `/deck`, or of an app such as `/apps/shop`. Requests may have the path
 * or not, as proxies do both; answers have it. The rest of the code does not know the path.
 */

/**
 * Attributes of our own templates that hold a path of the site. Text of an app cannot match, as its quotes are escaped.
 * A path in single quotes stays as it is: it is one of the whole port, with the base path already.
 */
const LINK = / (href|src|action|data-script|hx-(?:get|post|put|patch|delete))="\/(?!\/)(assets\/)?/g
const HEADERS = Object.freeze(['location', 'hx-redirect', 'hx-push-url', 'link'])

/** `basePath`: empty: none; `url`: as it was asked for */
export function withoutBase (basePath: string, url: string): string {
  const rest = url.slice(basePath.length)
  if (basePath === '' || !url.startsWith(basePath) || !/^($|[/?])/.test(rest)) return url
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** `home`: the base path of the port, below which the assets are, for all of its sites */
export function htmlWithBase (basePath: string, html: string, home: string = basePath) {
  return basePath === ''
    ? html
    : html.replace(LINK, (_, name, assets = '') => ` ${name}="${assets ? home : basePath}/${assets}`)
}

/** Adds the base path to headers of an answer that hold a URL. */
export function addBaseToHeaders (basePath: string, res: ServerResponse) {
  if (basePath === '') return
  const { setHeader } = res
  res.setHeader = (name, value) =>
    setHeader.call(res, name, HEADERS.includes(name.toLowerCase()) ? withBase(basePath, String(value)) : value)
}

/** `value`: a path, perhaps between `<` and `>` as in Link; one that has the base already stays */
function withBase (basePath: string, value: string) {
  const [, open, path] = /^(<?)(\/.*)$/s.exec(value) ?? []
  return path === undefined || withoutBase(basePath, path) !== path ? value : open + basePath + path
}

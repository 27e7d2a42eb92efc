/**
 * Where a proxy shows this site below a path of its own, such as `/deck`. What asks for it may say that path or leave it
 * out, as proxies do both; what is answered has it. Inside nobody knows of it.
 */

/** Attributes of our own templates that hold a path; whatever an app says has its quotes escaped. */
const LINK = / (href|src|action|hx-(?:get|post|put|patch|delete))="\/(?!\/)/g
const HEADERS = Object.freeze(['location', 'hx-redirect', 'hx-push-url', 'link'])

/** @param {string} basePath empty: none @param {string} url as it was asked for @returns {string} */
export function withoutBase (basePath, url) {
  const rest = url.slice(basePath.length)
  if (basePath === '' || !url.startsWith(basePath) || !/^($|[/?])/.test(rest)) return url
  return rest.startsWith('/') ? rest : `/${rest}`
}

/** @param {string} basePath @param {string} html */
export function htmlWithBase (basePath, html) {
  return basePath === '' ? html : html.replace(LINK, ` $1="${basePath}/`)
}

/**
 * Lets the headers of an answer that lead somewhere lead below the base.
 * @param {string} basePath @param {import('node:http').ServerResponse} res
 */
export function addBaseToHeaders (basePath, res) {
  if (basePath === '') return
  const { setHeader } = res
  res.setHeader = (name, value) => setHeader.call(res, name, HEADERS.includes(name.toLowerCase()) ? withBase(basePath, String(value)) : value)
}

/** @param {string} basePath @param {string} value a path, perhaps between `<` and `>` as in Link; one that has the base already stays */
function withBase (basePath, value) {
  const [, open, path] = /^(<?)(\/.*)$/s.exec(value) ?? []
  return path === undefined || withoutBase(basePath, path) !== path ? value : open + basePath + path
}

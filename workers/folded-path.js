/**
 * The path of a request without what differs from request to request, for apps whose framework names no route.
 * This file imports nothing.
 */

/** What stands in place of an id, as in the templates of Express and others. */
const ID = ':id'
/** What is not below the root: the `*` of OPTIONS, and what a proxy is asked for. */
const NO_PATH = '*'
const MAX_SEGMENTS = 8
const MAX_WORD = 32
const MAX_WORD_WITH_DIGIT = 15
const MAX_DIGITS = 2
const SLASH = 47
const ZERO = 48
const NINE = 57
const PERCENT = 37
const AT = 64

/**
 * Replaces each segment that looks like an id: a number, a UUID, a hash, a token, an address of mail.
 * @param {string} url  the target of a request, with or without a query @returns {string}
 */
export function foldPath (url) {
  const path = withoutQuery(url)
  if (path.charCodeAt(0) !== SLASH) return NO_PATH
  return isPlain(path) ? path : foldSegments(path)
}

/** @param {string} url */
export function withoutQuery (url) {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

/** Whether no segment can be one to fold: it is asked for each request. @param {string} path */
function isPlain (path) {
  let length = 0
  let segments = 0
  for (let index = 0; index < path.length; index++) {
    const code = path.charCodeAt(index)
    if (code === SLASH) {
      length = 0
      segments++
    } else if (code === PERCENT || code === AT || (code >= ZERO && code <= NINE) || ++length > MAX_WORD) return false
  }
  return segments <= MAX_SEGMENTS
}

/** @param {string} path */
function foldSegments (path) {
  const segments = path.split('/').slice(1)
  const folded = segments.slice(0, MAX_SEGMENTS).map((segment) => looksLikeId(segment) ? ID : segment)
  if (segments.length > MAX_SEGMENTS) folded.push('*')
  return `/${folded.join('/')}`
}

/** @param {string} segment */
function looksLikeId (segment) {
  let digits = 0
  for (let index = 0; index < segment.length; index++) {
    const code = segment.charCodeAt(index)
    if (code === PERCENT || code === AT) return true
    if (code >= ZERO && code <= NINE) digits++
  }
  return digits > MAX_DIGITS || (digits > 0 && digits === segment.length) || segment.length > (digits > 0 ? MAX_WORD_WITH_DIGIT : MAX_WORD)
}

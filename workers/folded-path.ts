/**
 * The path of a request without what differs from request to request, for apps whose framework names no route. This
 * file imports nothing.
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
const QUESTION = 63
const ZERO = 48
const NINE = 57
const PERCENT = 37
const AT = 64
const PRIME = 16_777_619
const BASIS = 2_166_136_261
/** No character is as large. */
const ID_CODE = 0x10000
const REST_CODE = 0x10001

/**
 * Replaces each segment that looks like an id: a number, a UUID, a hash, a token, an address of mail. `url`: the target
 * of a request, with or without a query.
 */
export function foldPath (url: string): string {
  const path = withoutQuery(url)
  if (path.charCodeAt(0) !== SLASH) return NO_PATH
  const segments = path.split('/').slice(1)
  const folded = segments.slice(0, MAX_SEGMENTS).map((segment) =>
    isId(segment.length, digitsOf(segment)) ? ID : segment
  )
  if (segments.length > MAX_SEGMENTS) folded.push('*')
  return `/${folded.join('/')}`
}

/**
 * A number for the folded path: each request is found by it, and makes no string (FNV-1a, of 31 bits). Returns the same
 * for urls that foldPath makes the same.
 */
export function foldedHash (url: string): number {
  if (url.charCodeAt(0) !== SLASH) return 0
  const end = url.length
  let hash = BASIS
  let before = hash
  let length = 0
  let digits = 0
  let segments = 1
  for (let index = 1; index < end; index++) {
    const code = url.charCodeAt(index)
    if (code === QUESTION) break
    if (code === SLASH) {
      if (isId(length, digits)) hash = mix(before, ID_CODE)
      if (segments++ === MAX_SEGMENTS) return mix(hash, REST_CODE) >>> 1
      before = hash = mix(hash, SLASH)
      length = digits = 0
    } else {
      hash = mix(hash, code)
      length++
      digits += digitsIn(code)
    }
  }
  return (isId(length, digits) ? mix(before, ID_CODE) : hash) >>> 1
}

export function withoutQuery (url: string) {
  const end = url.indexOf('?')
  return end < 0 ? url : url.slice(0, end)
}

function isId (length: number, digits: number) {
  return digits > MAX_DIGITS || (digits > 0 && (digits === length || length > MAX_WORD_WITH_DIGIT)) || length > MAX_WORD
}

function digitsOf (segment: string) {
  let digits = 0
  for (let index = 0; index < segment.length; index++) digits += digitsIn(segment.charCodeAt(index))
  return digits
}

/** What has an encoded character or is an address of mail is an id, so these count as many. */
function digitsIn (code: number) {
  if (code >= ZERO && code <= NINE) return 1
  return code === PERCENT || code === AT ? MAX_DIGITS + 1 : 0
}

function mix (hash: number, code: number) {
  return Math.imul(hash ^ code, PRIME)
}

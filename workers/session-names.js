/** A name that is longer than this is none: the headers of a request may have 16 kB. */
const MAX_LENGTH = 1024

/**
 * By what a request or an answer tells its session: the first of these that it has counts.
 * @typedef {object} SessionBy
 * @property {string | null} header
 * @property {string | null} cookie
 * @property {string | null} query  a parameter of the URL
 * @property {string | null} path  of the URL, such as `/sockjs/:server/:session`: its client makes the name
 */

/**
 * Finds the name that an app has given to a session of a client: in the requests of that client, and in the answer that
 * told it.
 * @param {SessionBy} by
 */
export function createSessionNames ({ header, cookie, query, path }) {
  const headerName = header?.toLowerCase()
  const headerLine = header && new RegExp(`\\n${escapeText(header)}:[ \\t]*([^\\r\\n]*)`, 'i')
  const cookieLine = cookie && new RegExp(`\\ncookie:(?:[^\\r\\n]*?;)??[ \\t]*${escapeText(cookie)}=([^;\\r\\n]*)`, 'i')
  const setCookieLine = cookie && new RegExp(`\\n[sS]et-[cC]ookie:[ \\t]*${escapeText(cookie)}=([^;\\r\\n]*)`)
  const parameter = query && new RegExp(`[?&]${escapeText(query)}=([^&#\\s]*)`)
  const inPath = path && new RegExp(`^${path.split('/').map((part) => part === ':session' ? '([^/?#]+)' : part.startsWith(':') ? '[^/?#]+' : escapeText(part)).join('/')}(?=[/?#]|$)`)
  // As part of a URL, or of JSON.
  const textInBody = query && new RegExp(`\\b${escapeText(query)}(?:=|":[ ]*")([^"&#\\s]*)`)
  const cookiePair = cookie && new RegExp(`(?:^|;)[ \\t]*${escapeText(cookie)}=([^;]*)`)

  return {
    /** @param {string} head  the first bytes of a connection @returns {string | null} null: none, or they do not say it yet */
    inHead (head) {
      const end = head.indexOf('\r\n\r\n')
      if (end === -1) return null
      const whole = head.slice(0, end)
      const [, url = ''] = whole.slice(0, whole.indexOf('\r\n')).split(' ')
      return find(headerLine, whole) ?? find(cookieLine, whole) ?? find(parameter, url) ?? find(inPath, url)
    },

    /** @param {import('node:http').IncomingMessage} request @returns {string | null} */
    inRequest ({ rawHeaders, url = '' }) {
      return (headerName && usable(valueOf(rawHeaders, headerName))) || (cookiePair && find(cookiePair, valueOf(rawHeaders, 'cookie') ?? '')) || find(parameter, url) || find(inPath, url)
    },

    /** @param {{ url?: string }} request @returns {string | null} the name that its client has made */
    inPath: ({ url = '' }) => find(inPath, url),

    /** @param {string} head of an answer @returns {string | null} */
    inAnswer: (head) => find(headerLine, head) ?? find(setCookieLine, head),

    /** Whether the beginning of what an answer says may tell one. */
    isInBody: Boolean(query),

    /** @param {string} text  the beginning of a body: it tells a new session there, if at all @returns {string | null} */
    inBody: (text) => find(textInBody, text)
  }
}

/** Looks into what Node has read, as it makes an object of it only for who asks. @param {string[]} headers  names and values @param {string} name  in lower case */
function valueOf (headers, name) {
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at].length === name.length && headers[at].toLowerCase() === name) return headers[at + 1]
  }
  return undefined
}

/** @param {RegExp | '' | null} pattern @param {string} text */
function find (pattern, text) {
  return pattern ? usable(pattern.exec(text)?.[1]) : null
}

/** @param {unknown} name */
function usable (name) {
  const text = typeof name === 'string' ? name.trim() : ''
  return text === '' || text.length > MAX_LENGTH ? null : text
}

/** @param {string} text @returns {string} the pattern that it alone matches */
function escapeText (text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

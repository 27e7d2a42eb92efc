import type { IncomingMessage } from 'node:http'

/** A name that is longer than this is none: the headers of a request may have 16 kB. */
const MAX_LENGTH = 1024

/** By what a request or an answer tells its session: the first of these that it has counts. */
export type SessionBy = {
  header: string | null,
  cookie: string | null,
  /** a parameter of the URL */
  query: string | null,
  /** of the URL, such as `/sockjs/:server/:session`: its client makes the name */
  path: string | null
}

/**
 * Finds the name that an app has given to a session of a client: in the requests of that client, and in the answer that
 * told it.
 */
export function createSessionNames ({ header, cookie, query, path }: SessionBy) {
  const headerName = header?.toLowerCase()
  const headerLine = header && new RegExp(`\\n${escapeText(header)}:[ \\t]*([^\\r\\n]*)`, 'i')
  const cookieLine = cookie && new RegExp(`\\ncookie:(?:[^\\r\\n]*?;)??[ \\t]*${escapeText(cookie)}=([^;\\r\\n]*)`, 'i')
  const setCookieLine = cookie && new RegExp(`\\n[sS]et-[cC]ookie:[ \\t]*${escapeText(cookie)}=([^;\\r\\n]*)`)
  const parameter = query && new RegExp(`[?&]${escapeText(query)}=([^&#\\s]*)`)
  const inPath = path &&
    new RegExp(
      `^${
        path.split('/').map((part) =>
          part === ':session' ? '([^/?#]+)' : part.startsWith(':') ? '[^/?#]+' : escapeText(part)
        ).join('/')
      }(?=[/?#]|$)`
    )
  // As part of a URL, or of JSON.
  const textInBody = query && new RegExp(`\\b${escapeText(query)}(?:=|":[ ]*")([^"&#\\s]*)`)
  const cookiePair = cookie && new RegExp(`(?:^|;)[ \\t]*${escapeText(cookie)}=([^;]*)`)

  return {
    /** `head`: the first bytes of a connection. Returns null: none, or they do not say it yet. */
    inHead (head: string): string | null {
      const end = head.indexOf('\r\n\r\n')
      if (end === -1) return null
      const whole = head.slice(0, end)
      const [, url = ''] = whole.slice(0, whole.indexOf('\r\n')).split(' ')
      return find(headerLine, whole) ?? find(cookieLine, whole) ?? find(parameter, url) ?? find(inPath, url)
    },

    inRequest ({ rawHeaders, url = '' }: IncomingMessage): string | null {
      return (headerName && usable(valueOf(rawHeaders, headerName))) ||
        (cookiePair && find(cookiePair, valueOf(rawHeaders, 'cookie') ?? '')) || find(parameter, url) ||
        find(inPath, url)
    },

    /** @returns the name that its client has made */
    inPath: ({ url = '' }: { url?: string }): string | null => find(inPath, url),

    /** `head`: of an answer */
    inAnswer: (head: string): string | null => find(headerLine, head) ?? find(setCookieLine, head),

    /** Whether the beginning of what an answer says may tell one. */
    isInBody: Boolean(query),

    /** `text`: the beginning of a body: it tells a new session there, if at all */
    inBody: (text: string): string | null => find(textInBody, text)
  }
}

/**
 * Looks into what Node has read, as it makes an object of it only for who asks. `headers`: names and values; `name`: in
 * lower case.
 */
function valueOf (headers: string[], name: string) {
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at].length === name.length && headers[at].toLowerCase() === name) return headers[at + 1]
  }
  return undefined
}

function find (pattern: RegExp | '' | null, text: string) {
  return pattern ? usable(pattern.exec(text)?.[1]) : null
}

function usable (name: unknown) {
  const text = typeof name === 'string' ? name.trim() : ''
  return text === '' || text.length > MAX_LENGTH ? null : text
}

/** @returns the pattern that it alone matches */
function escapeText (text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

import http from 'node:http'

/** Soon enough for a test, and seldom enough for a master that is busy with its end. */
const RETRY_MS = 20

/**
 * Follows a deck's server-sent events from the first one on, as an EventSource does: a stream that is cut, as that of a
 * slow reader is, goes on after the last event that came.
 */
export function createEventLog () {
  /** @type {any[]} */
  const seen = []
  /** @type {Set<() => void>} */
  const watchers = new Set()
  /** @type {http.ClientRequest | undefined} */
  let request
  /** @type {NodeJS.Timeout | undefined} */
  let retry

  return {
    count: () => seen.length,

    /** @param {string} url @param {string} token */
    follow (url, token) {
      close()
      connect(url, token)
    },

    close,

    /** @param {(event: any) => boolean} matches @returns {Promise<any>} */
    until: (matches) => watch(() => seen.find(matches)),

    /** @param {number} count @returns {Promise<any>} */
    untilMoreThan: (count) => watch(() => seen.length > count)
  }

  function close () {
    clearTimeout(retry)
    const old = request
    request = undefined
    old?.destroy()
  }

  /** @param {string} url @param {string} token */
  function connect (url, token) {
    const own = http.get(url, { agent: false, headers: { authorization: `Bearer ${token}`, 'last-event-id': String(seen.at(-1)?.id ?? 0) } }, (response) => {
      let rest = ''
      response.setEncoding('utf8').on('error', () => {}).on('data', (text) => {
        const blocks = (rest + text).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) take(block)
      })
    })
    request = own
    // ECONNRESET, ECONNREFUSED: 'close' follows, and until the test is over a master is expected there, or the next one elsewhere.
    own.on('error', () => {}).on('close', () => {
      if (own === request) retry = setTimeout(() => connect(url, token), RETRY_MS)
    })
  }

  function take (/** @type {string} */ block) {
    const data = block.split('\n').find((line) => line.startsWith('data:'))
    if (!data) return
    seen.push(JSON.parse(data.slice(5)))
    for (const watcher of [...watchers]) watcher()
  }

  function watch (/** @type {() => any} */ find) {
    return new Promise((resolve) => {
      const look = () => {
        const found = find()
        if (!found) return
        watchers.delete(look)
        resolve(found)
      }
      watchers.add(look)
      look()
    })
  }
}

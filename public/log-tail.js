/**
 * Follows the workers' output from a place on, over lost connections, masters that come and go, and times in which
 * nobody looked: each line once. The server gives every batch of lines an id, which is where the next one begins; so a
 * batch counts once its end has come, and what has come of it before a connection breaks will come again.
 * @typedef {{ slot: number, stream: 'stdout' | 'stderr', text?: string, arrivedAt?: string | null, place?: string, member?: string, bytes?: number }} Entry  `bytes`: so many were left out
 * @typedef {'live' | 'lost'} State
 * @typedef {Pick<EventSource, 'readyState' | 'close'> & { addEventListener(type: string, listener: (message: MessageEvent) => void): void }} Source
 */

const RETRY_MS = 3000

/**
 * @param {object} parts
 * @param {string} parts.url of the stream, to which a parameter can be added
 * @param {string} parts.places where to begin, as the server has said; empty: with whatever comes
 * @param {(entries: Entry[]) => void} parts.onEntries
 * @param {(state: State) => void} parts.onState
 * @param {(url: string) => Source} [parts.open]
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 */
export function createTail ({ url, places, onEntries, onState, open = (address) => new EventSource(address), timers = globalThis }) {
  /** @type {Source | null} */
  let source = null
  /** @type {Entry[]} of a batch whose end is still to come */
  let staged = []
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let retry

  return { start: startTail, stop: stopTail }

  function startTail () {
    if (source) return
    timers.clearTimeout(retry)
    const opened = source = open(places === '' ? url : `${url}from=${places}`)
    opened.addEventListener('open', () => onState('live'))
    opened.addEventListener('message', takeMessage)
    opened.addEventListener('dropped', takeMessage)
    opened.addEventListener('error', () => {
      staged = []
      onState('lost')
      // A refusal, unlike a network that fails, is final to the browser; but the next master may know better.
      if (opened.readyState === 2 && source === opened) {
        stopTail()
        retry = timers.setTimeout(startTail, RETRY_MS)
      }
    })
  }

  function stopTail () {
    timers.clearTimeout(retry)
    source?.close()
    source = null
    staged = []
  }

  /** @param {MessageEvent} message */
  function takeMessage ({ data, lastEventId }) {
    staged.push(JSON.parse(data))
    if (lastEventId === '' || lastEventId === places) return
    places = lastEventId
    const entries = staged
    staged = []
    onEntries(entries)
  }
}

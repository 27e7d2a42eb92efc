/**
 * Follows the workers' output from a place on, over lost connections, masters that come and go, and times in which
 * nobody looked: each line once. The server gives every batch of lines an id, which is where the next one begins; so a
 * batch counts once its end has come, and what has come of it before a connection breaks will come again.
 * `bytes`: so many were left out
 */
export type Entry = { slot: number, stream: 'stdout' | 'stderr', text?: string, arrivedAt?: string | null,
  place?: string, member?: string, app?: string, bytes?: number }
export type State = 'live' | 'lost'
type Source = Pick<EventSource, 'readyState' | 'close'> & {
  addEventListener(type: string, listener: (message: MessageEvent) => void): void
}

const RETRY_MS = 3000

export function createTail (
  { url, places, onEntries, onState, open = (address) => new EventSource(address), timers = globalThis }: {
    /** of the stream, to which a parameter can be added */
    url: string,
    /** where to begin, as the server has said; empty: with whatever comes */
    places: string,
    onEntries: (entries: Entry[]) => void,
    onState: (state: State) => void,
    open?: (url: string) => Source,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
  }
) {
  let source: Source | null = null
  /** of a batch whose end is still to come */
  let staged: Entry[] = []
  let retry: ReturnType<typeof setTimeout> | undefined

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

  function takeMessage ({ data, lastEventId }: MessageEvent) {
    staged.push(JSON.parse(data))
    if (lastEventId === '' || lastEventId === places) return
    places = lastEventId
    const entries = staged
    staged = []
    onEntries(entries)
  }
}

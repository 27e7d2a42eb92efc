import { BASE } from './base.ts'
import { byId, setText } from './elements.ts'
import { formatExactDuration } from './format.ts'
import { createTail, type Entry } from './log-tail.ts'
import { createView } from './log-view.ts'
import { readable } from './readable-text.ts'

/** The page of a live worker: its requests in flight, and the output of its slot. */

const ASK_EVERY_MS = 2000

/** null: another program than Node does not tell of its requests. */
const requests = document.getElementById('worker-requests')
let timer: ReturnType<typeof setTimeout> | undefined

askWorker()
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) askWorker()
})
followLog()

async function askWorker () {
  clearTimeout(timer)
  if (requests === null) return
  try {
    const response = await fetch(BASE + requests.dataset.url, {
      headers: { Accept: 'application/json, application/problem+json' }
    })
    const body = await response.json()
    if (!requests.isConnected) return
    if (response.ok) showRequests(body)
    else showReason(response.status === 404 ? 'The worker has ended.' : body.detail)
    if (response.status === 404) return
  } catch {
    if (!requests.isConnected) return
    // The master is away: the page says so elsewhere.
    showReason('Not known: the master did not answer.')
  }
  if (!document.hidden) timer = setTimeout(askWorker, ASK_EVERY_MS)
}

function showRequests ({ items, total }: { items: { method: string, path: string, ageMs: number }[], total: number }) {
  if (items.length === 0) return showReason('None.')
  byId('worker-requests-rows').replaceChildren(...items.map(({ method, path, ageMs }) => {
    const row = document.createElement('tr')
    row.append(cellOf('mono', method), cellOf('mono request-path', path), cellOf('num', formatExactDuration(ageMs)))
    return row
  }))
  setText(byId('worker-requests-count'),
    total > items.length ? `the oldest ${items.length} of ${total}` : `${total}, oldest first`)
  byId('worker-requests-empty').hidden = true
  byId('worker-requests-list').hidden = false
}

/** `text`: why there is no list */
function showReason (text: string) {
  setText(byId('worker-requests-empty'), text)
  setText(byId('worker-requests-count'), '')
  byId('worker-requests-empty').hidden = false
  byId('worker-requests-list').hidden = true
}

/** `text`: a client's */
function cellOf (className: string, text: string) {
  const made = document.createElement('td')
  made.className = className
  const isolated = document.createElement('bdi')
  isolated.textContent = readable(text)
  made.append(isolated)
  return made
}

function followLog () {
  const panel = document.getElementById('worker-log')
  if (!panel) return
  const view = createView(byId('worker-log-lines'), ({ shown }) => {
    byId('worker-log-empty').hidden = shown > 0
  })
  // What comes after its end is of the next worker of its slot.
  const isOwn = ({ arrivedAt }: Entry) => {
    const end = document.getElementById('worker-end')
    return !end || (arrivedAt ?? '') <= String(end.dataset.at)
  }
  const tail = createTail({ url: BASE + panel.dataset.stream, places: String(panel.dataset.places),
    onEntries: (entries) => view.add(entries.filter(isOwn)), onState () {} })
  const toggleTail = () => document.hidden ? tail.stop() : tail.start()
  document.addEventListener('visibilitychange', toggleTail)
  addEventListener('pagehide', tail.stop)
  addEventListener('pageshow', toggleTail)
  toggleTail()
}

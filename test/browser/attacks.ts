/**
 * What a page can try at a server of another origin, as the script of a hostile page: a fixture serves it. Each attempt
 * tells what it could read there, null for nothing; what it has changed is for that server to say.
 */
export type Plan = {
  /** origin */
  target: string,
  /** paths */
  reads: string[],
  writes: { method: string, path: string, body: string }[],
  /** paths that take a form */
  forms: string[],
  /** paths */
  streams: string[],
  /** path of a WebSocket */
  socket: string,
  /** that must not be used ahead of a visit */
  link: string,
  /** a name */
  cookie: string,
  /** the paths share the ways to ask: each has some of them, and each way has some paths */
  isShared?: boolean
}
type Attempt = { name: string, run: () => Promise<string | null> }

const MODES = ['cors', 'no-cors', 'same-origin'] as const
/** The third one ends in the browser. */
const ASKING = MODES.slice(0, 2)
/** Of the ways to send something, each with another mode. */
const SHARES = 4
const FORM_TYPE = 'application/x-www-form-urlencoded'
const FIELDS = 'workers=3&token=guess&type=reload&next=/'
const PATIENCE_MS = 40_000
const PAGES = ['/', '/access', '/sign-in', '/api/v1/status']

const KINDS: Record<string, (plan: Plan) => Attempt[]> = {
  fetch: ({ target, reads, isShared }) =>
    reads.flatMap((path) => (isShared ? ASKING : MODES).map((mode) => fetching(target + path, { mode }))),
  part: ({ target }) =>
    MODES.map((mode) => fetching(`${target}/api/v1/status`, { mode, headers: { range: 'bytes=0-9' } })),
  redirect: ({ target }) => MODES.map((mode) => fetching(`${target}/`, { mode, redirect: 'manual' })),
  token: (
    { target }
  ) => [fetching(`${target}/api/v1/status`, { mode: 'cors', headers: { authorization: 'Bearer guess' } })],
  write: ({ target, writes, isShared }) =>
    writes.flatMap(({ method, path, body }, index) =>
      shareOf(bodiesOf(body).flatMap((body) => MODES.map((mode) => ({ method, mode, ...body }))), index, isShared).map((
        init
      ) => fetching(target + path, init))
    ),
  beacon: ({ target, forms, writes, isShared }) =>
    [...forms, ...writes.map(({ path }) => path)].flatMap((path, index) =>
      shareOf(['text/plain', FORM_TYPE, 'application/json'], index, isShared).map((type) => ({
        name: `${type} to ${path}`,
        async run () {
          navigator.sendBeacon(target + path, new Blob([FIELDS], { type }))
          return null
        }
      }))
    ),
  frame: ({ target }) =>
    PAGES.flatMap((path) =>
      ['iframe', 'object', 'embed'].map((tag) => ({ name: `${tag} of ${path}`, run: () => framed(tag, target + path) }))
    ),
  window: ({ target }) => PAGES.map((path) => ({ name: path, run: () => opened(target + path) })),
  'form in a frame': ({ target, forms, isShared }) =>
    forms.flatMap((path, index) =>
      shareOf([FORM_TYPE, 'text/plain', 'multipart/form-data'], index, isShared).map((type) => ({
        name: `${type} to ${path}`,
        run: () => submittedInFrame(target + path, type)
      }))
    ),
  'form in a window': ({ target, forms }) =>
    forms.slice(-3).map((path) => ({ name: path, run: () => submittedInWindow(target + path) })),
  image: ({ target }) =>
    ['/assets/favicon.svg', '/assets/icons.svg', '/api/v1/status'].map((path) =>
      loading('img', { src: target + path })
    ),
  script: ({ target }) =>
    ['/assets/early.js', '/api/v1/status', '/history.csv'].map((path) => loading('script', { src: target + path })),
  module: ({ target }) =>
    ['/assets/early.js', '/api/v1/openapi.json'].map((path) =>
      loading('script', { src: target + path, type: 'module' })
    ),
  stylesheet: ({ target }) =>
    ['/assets/app.css', '/'].map((path) => loading('link', { rel: 'stylesheet', href: target + path })),
  ahead: ({ target, link }) =>
    ['prefetch', 'prerender', 'preload'].map((rel) => ({ name: rel, async run () {
      document.head.append(
        Object.assign(document.createElement('link'), { rel, as: rel === 'preload' ? 'fetch' : '',
          href: target + link })
      )
      return null
    } })),
  speculation: ({ target, link }) =>
    ['prefetch', 'prerender'].map((rule) => ({ name: rule, async run () {
      const text = JSON.stringify({ [rule]: [{ source: 'list', urls: [target + link], eagerness: 'immediate' }] })
      document.head.append(Object.assign(document.createElement('script'), { type: 'speculationrules', text }))
      return null
    } })),
  stream: ({ target, streams }) =>
    streams.flatMap((path) =>
      [true, false].map((withCredentials) => ({ name: path, run: () => streamed(target + path, withCredentials) }))
    ),
  socket: ({ target, streams, socket }) =>
    [socket, ...streams].map((path) => ({ name: path, run: () => connected(target.replace('http', 'ws') + path) })),
  worker: (plan) => [{ name: 'a worker', run: () => inWorker(plan) }],
  'service worker': (plan) => [{ name: 'a service worker', run: () => inServiceWorker(plan) }],
  cookie: ({ cookie }) => [
    { name: 'read', run: async () => document.cookie.includes(cookie) ? document.cookie : null },
    // Those of a longer path come before the one that signs in.
    ...['/', '/api', '/api/v1', '/history', '/actions'].map((path) => ({ name: `planted at ${path}`, async run () {
      document.cookie = `${cookie}=${'x'.repeat(43)}; path=${path}`
      return null
    } }))
  ]
}

/** `index`: of the path. Returns those of this path: of three one, of twelve three. */
function shareOf<T> (ways: T[], index: number, isShared: boolean = false): T[] {
  const shares = ways.length > MODES.length ? SHARES : ways.length
  return isShared ? ways.filter((_, way) => way % shares === index % shares) : ways
}

/** @returns how much was tried of each kind, and what could be read */
export async function attack (plan: Plan): Promise<{ made: Record<string, number>, read: string[] }> {
  const made: Record<string, number> = {}
  const read: string[] = []
  for (const [kind, attemptsOf] of Object.entries(KINDS)) {
    const attempts = attemptsOf(plan)
    made[kind] = attempts.length
    read.push(...(await outcomes(attempts)).map((outcome) => `${kind}: ${outcome}`))
  }
  return { made, read }
}

async function outcomes (attempts: Attempt[]): Promise<string[]> {
  const all = await Promise.all(
    attempts.map(async ({ name, run }) => ({ name, seen: await Promise.race([run(), untilLate()]) }))
  )
  return all.filter(({ seen }) => seen !== null).map(({ name, seen }) => `${name}: ${seen}`)
}

/** Whatever is refused ends. */
function untilLate (): Promise<string> {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS, 'it has not ended'))
}

function fetching (url: string, init: RequestInit) {
  return { name: `${init.mode} ${init.method ?? 'GET'} ${new URL(url).pathname}`, run: () => fetched(url, init) }
}

async function fetched (url: string, init: RequestInit) {
  const controller = new AbortController()
  try {
    const response = await fetch(url, { credentials: 'include', signal: controller.signal, ...init })
    // An opaque answer has no text, but may go on for ever; of a stream the headers will do.
    const isEndless = response.type === 'opaque' || response.headers.get('content-type')?.includes('event-stream')
    const text = isEndless ? '' : await response.text()
    return response.status !== 0 || text !== '' ? `${response.status} ${text.slice(0, 100)}` : null
  } catch {
    // Refused, by the browser or by the server: a page cannot tell.
    return null
  } finally {
    controller.abort()
  }
}

/** All that a page can send without asking first, and what it cannot. */
function bodiesOf (json: string): RequestInit[] {
  const parts = new FormData()
  parts.set('workers', '3')
  return [{ body: json, headers: { 'content-type': 'text/plain' } }, { body: FIELDS,
    headers: { 'content-type': FORM_TYPE } }, { body: parts }, { body: json,
    headers: { 'content-type': 'application/json' } }]
}

/** Both ends of a load are told, and by them a page knows whether there was something. */
function loading (tag: 'img' | 'script' | 'link', attributes: Record<string, string>) {
  const name = `${tag} of ${attributes.src ?? attributes.href}`
  const run = () =>
    new Promise((resolve) => {
      const element = Object.assign(document.createElement(tag), attributes, { onload: () => resolve('loaded'),
        onerror: () => resolve(null) })
      document.head.append(element)
    }) as Promise<string | null>
  return { name, run }
}

/** It stays, for whoever looks what has become of it. */
async function framed (tag: string, url: string) {
  const frame = document.createElement(tag) as HTMLIFrameElement
  Object.assign(frame, { [tag === 'object' ? 'data' : 'src']: url, type: 'text/html' })
  await ended(frame)
  return tag === 'embed' ? null : documentIn(frame)
}

async function submittedInFrame (url: string, type: string) {
  const frame = Object.assign(document.createElement('iframe'), { name: `frame-${Math.random()}` })
  document.body.append(frame)
  formTo(url, frame.name, type).submit()
  await ended(frame)
  return documentIn(frame)
}

/** `element`: that comes into the page, if it is not in it yet */
function ended (element: HTMLElement) {
  return new Promise((resolve) => {
    element.addEventListener('load', resolve)
    element.addEventListener('error', resolve)
    if (!element.isConnected) document.body.append(element)
  })
}

function documentIn (frame: HTMLIFrameElement) {
  // What was refused may leave the empty document that a frame begins with.
  const document = frame.contentDocument
  return document && document.URL !== 'about:blank' ? document.documentElement.outerHTML : null
}

function opened (url: string) {
  return readFrom(window.open(url) as Window)
}

function submittedInWindow (url: string) {
  const name = `window-${Math.random()}`
  const other = window.open('about:blank', name) as Window
  formTo(url, name, FORM_TYPE).submit()
  return readFrom(other)
}

function formTo (url: string, target: string, enctype: string) {
  const form = Object.assign(document.createElement('form'), { action: url, method: 'post', target, enctype })
  for (const [name, value] of new URLSearchParams(FIELDS))
    form.append(Object.assign(document.createElement('input'), { name, value }))
  document.body.append(form)
  return form
}

/** Until it is lost to this page, as the other side asks for, or answers. */
function readFrom (other: Window): Promise<string | null> {
  return new Promise((resolve) => {
    const onMessage = ({ source }: MessageEvent) => {
      if (source === other) finish('it answers')
    }
    const timer = setInterval(look, 10)
    window.addEventListener('message', onMessage)

    function look () {
      if (other.closed) return finish(null)
      other.postMessage('anybody there?', '*')
    }

    function finish (outcome: string | null) {
      clearInterval(timer)
      window.removeEventListener('message', onMessage)
      resolve(outcome)
    }
  })
}

function streamed (url: string, withCredentials: boolean): Promise<string | null> {
  return new Promise((resolve) => {
    const source = new EventSource(url, { withCredentials })
    const finish = (outcome: string | null) => {
      source.close()
      resolve(outcome)
    }
    source.onopen = () => finish('open')
    source.onerror = () => finish(null)
  })
}

function connected (url: string): Promise<string | null> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url)
    socket.onopen = () => {
      socket.close()
      resolve('open')
    }
    socket.onerror = () => resolve(null)
  })
}

async function inWorker (plan: Plan) {
  const worker = new Worker(import.meta.url, { type: 'module' })
  const outcome = await askFor(plan, worker)
  worker.terminate()
  return outcome
}

async function inServiceWorker (plan: Plan) {
  const registration = await navigator.serviceWorker.register(import.meta.url, { type: 'module' })
  const { active } = await navigator.serviceWorker.ready
  const outcome = await askFor(plan, active as ServiceWorker)
  await registration.unregister()
  return outcome
}

/** `worker`: this very file */
function askFor (plan: Plan, worker: Pick<Worker, 'postMessage'>): Promise<string | null> {
  const { port1, port2 } = new MessageChannel()
  worker.postMessage(plan, [port2])
  return new Promise((resolve) => {
    port1.onmessage = ({ data }) => resolve(data.length > 0 ? data.join() : null)
  })
}

if (typeof document === 'undefined') {
  globalThis.onmessage = async ({ data, ports: [port] }: MessageEvent<Plan>) =>
    port.postMessage(await outcomes(KINDS.fetch(data)))
} else {
  Object.assign(window, { attack })
}

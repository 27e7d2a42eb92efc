import assert from 'node:assert/strict'
import { once, type EventEmitter } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import supertest from 'supertest'
import { openHistory } from '../../db/history.ts'
import { createAdmin } from '../../server/admin/listener.ts'
import { createEventStream } from '../../server/events/stream.ts'
import { behindPort, createFakeApps } from './fake-apps.ts'
import { createFakeDeck } from './fake-deck.ts'
import './no-hang.ts'
import type { TestContext } from 'node:test'
import type { Socket } from 'socket.io-client'
import type { History } from '../../db/history.ts'
import type { Timers } from '../../server/admin/site.ts'
import type { Apps } from '../../server/host/api-apps.ts'
import type { Role } from '../../server/api/roles.ts'
import type { AnswerTo, NewToken, Problem } from './answers.ts'
import type { SentFragment } from '../../public/live-events.d.ts'

/**
 * The language of the admin tests: a real admin port over a real history, which is in memory, and a deck without
 * processes.
 */
export type Admin = Awaited<ReturnType<typeof startAdmin>>
export type HostAdmin = Awaited<ReturnType<typeof startHostAdmin>>
type Options = Partial<Parameters<typeof createAdmin>[0]>
type Method = 'get' | 'post' | 'put' | 'delete' | 'head' | 'patch' | 'options'
type Refusal = 400 | 401 | 403 | 404 | 405 | 406 | 409 | 410 | 412 | 413 | 415 | 422 | 428 | 429 | 500 | 503 | 504
/** What tests use of a call by supertest; `T`: what is answered. */
export type Call<T> = PromiseLike<{ status: number, headers: http.IncomingHttpHeaders, text: string, body: T }> & {
  set: (name: string | Record<string, string>, value?: string) => Call<T>,
  send: (body?: unknown) => Call<T>,
  type: (name: string) => Call<T>,
  expect: { <S extends number>(status: S, body?: string): Call<S extends Refusal ? Problem : T>,
    (name: string, value: string | RegExp): Call<T>, (check: (answer: { status: number }) => void): Call<T> },
  buffer: (isWhole: boolean) => Call<T>,
  parse: (read: (response: http.IncomingMessage, done: (error: Error | null, body: unknown) => void) => void) => Call<T>
}

export const TOKEN = 'test-token-0123456789abcdef'
const OWN = Object.freeze({ authorization: `Bearer ${TOKEN}` })
export const START_MS = Date.parse('2026-01-01T00:00:00.000Z')

/** `t`: closes everything when the test ends */
export async function startAdmin (t: Pick<TestContext, 'after'>, options: Options = {}) {
  const history = options.history ?? openTestHistory()
  const clock = createClock()
  const deck = createFakeDeck({ history, now: options.now ?? clock.now, wall: options.now })
  return { deck, ...await openPort(t, { clock, history }, { ...behindPort(deck, history), ...options }) }
}

/**
 * The port of a host whose apps have no processes.
 * @param options `names`: of its apps, which run; `fleet`: where it joins one
 */
export async function startHostAdmin (t: Pick<TestContext, 'after'>,
  { names = ['mail', 'shop'], fleet, ...options }: Options & { names?: readonly string[], fleet?: Apps['fleet'] } = {})
{
  const history = options.history ?? openTestHistory()
  const clock = createClock()
  const events = createEventStream({ lastId: history.lastEventId(), now: options.now })
  events.subscribe((event) => history.record(event))
  const apps = createFakeApps({ names, now: options.now ?? clock.now, wall: options.now, fleet, history, events })
  const port = await openPort(t, { clock, history }, { events, apps, ...options })
  t.after(apps.closeAll)
  return { apps, events, ...port }
}

/** A page may come short when its time is spent; here time stands still, so that a busy machine changes no page. */
function openTestHistory () {
  return openHistory({ file: ':memory:', clock: () => 0 })
}

async function openPort (t: Pick<TestContext, 'after'>,
  { clock, history }: { clock: ReturnType<typeof createClock>, history: History },
  options: Options & Pick<Required<Options>, 'apps' | 'events'>)
{
  const logged: [fields: object, text: string][] = []
  const take = (...line: typeof logged[number]) => logged.push(line)
  const log = { error: take, warn: take }
  const admin = createAdmin({ token: TOKEN, host: '127.0.0.1', port: 0, now: clock.now, timers: clock.timers, log,
    keptMs: Infinity, ...options, history })
  const { url, port } = await admin.listen()
  let session: Promise<string> | undefined
  t.after(async () => {
    const closed = admin.close()
    // What a failed test left open is cut at once.
    clock.advance(60_000)
    await closed
    history.close()
  })

  return {
    admin,
    history,
    clock,
    logged,
    url,
    port,
    origin: url,
    cookieName: `clusterdeck_${port}`,

    /** Calls as a script does: with the token and nothing else. */
    api: <P extends string, M extends Method>(method: M, path: P): Call<AnswerTo<M, P>> =>
      supertest(url)[method](path).set('Authorization', `Bearer ${TOKEN}`),

    /** Calls as a stranger does. */
    stranger: (): { [M in Method]: <P extends string>(path: P) => Call<AnswerTo<M, P>> } => supertest(url),

    signIn,

    /** @returns a new token, and the headers of whoever has it */
    async tokenFor (name: string, role: Role, more: { ttl?: string, apps?: string[] } = {}) {
      const { body } = await supertest(url).post('/api/v1/tokens').set(OWN).send({ name, role, ...more }).expect(201)
      return { ...body as NewToken, headers: { authorization: `Bearer ${body.token}` } }
    },

    /** @returns a Cookie header of whoever signs in by this token */
    async signInBy (token: string): Promise<string> {
      const { headers } = await supertest(url).post('/sign-in').set('Origin', url).type('form').send({ token }).expect(
        303
      )
      return cookieOf(headers)
    },

    /** The command line, for this port. */
    cli: async (...words: string[]) =>
      (await import('./cli-here.ts')).runCliHere([...words, '--url', url, '--token', TOKEN]),

    /** Visits a page as a browser does; unless `headers` say otherwise, as whoever has started the deck. */
    visit: async (path: string, headers: Record<string, string> = {}): Promise<Answer> =>
      rawRequest({ port }, { path, headers: { accept: 'text/html', ...await ownCookie(headers), ...headers } }),

    /** Sends a form as a page does with its script; unless `headers` say otherwise, as whoever has started the deck. */
    post: async (action: string, fields: Record<string, string> | string,
      headers: Record<string, string> = {}): Promise<Answer> =>
      rawRequest({ port }, { method: 'POST', path: `/actions/${action}`, body: String(new URLSearchParams(fields)),
        headers: { accept: 'application/problem+json', 'sec-fetch-site': 'same-origin',
          'content-type': 'application/x-www-form-urlencoded', ...await ownCookie(headers), ...headers } })
  }

  /** @returns a Cookie header, as a browser has it after a visit to a sign-in link */
  async function signIn (link: string = admin.signInLink()): Promise<string> {
    return cookieOf((await supertest(url).get(link.slice(url.length))).headers)
  }

  async function ownCookie ({ cookie, authorization }: Record<string, string>): Promise<Record<string, string>> {
    if (cookie !== undefined || authorization !== undefined) return {}
    session ??= signIn()
    return { cookie: await session }
  }
}

function cookieOf (headers: http.IncomingHttpHeaders): string {
  return String(headers['set-cookie']?.[0]).split(';')[0]
}

/** A clock that stands still until it is told how late it is. */
export function createClock () {
  let nowMs = START_MS
  let lastId = 0
  const due: Map<number, { at: number, everyMs: number | null, run: () => void }> = new Map()
  const add = (run: () => void, ms: number, everyMs: number | null) => {
    due.set(++lastId, { at: nowMs + ms, everyMs, run })
    return lastId
  }
  return { now: () => nowMs, pending: () => due.size, advance (ms: number) {
    nowMs += ms
    for (const [id, timer] of [...due]) {
      if (timer.at > nowMs) continue
      if (timer.everyMs === null) due.delete(id)
      else timer.at = nowMs + timer.everyMs
      timer.run()
    }
  },
    timers: { setTimeout: (run: () => void, ms: number) => add(run, ms, null),
      setInterval: (run: () => void, ms: number) => add(run, ms, ms), clearTimeout: (id: number) => {
        due.delete(id)
      }, clearInterval: (id: number) => {
        due.delete(id)
      } } as unknown as Timers }
}

export type Answer = { status: number, headers: http.IncomingHttpHeaders, text: string, json: <T = Problem>() => T,
  isUpgraded: boolean }

/**
 * A request whose headers are exactly these: Host and Origin included, which friendlier clients set themselves.
 * `agent`: false: a connection of its own.
 */
export function rawRequest ({ port }: Pick<Admin, 'port'>,
  { method = 'GET', path = '/healthz', headers = {}, body, agent = false }: { method?: string, path?: string,
    headers?: Record<string, string | string[]>, body?: string, agent?: http.Agent | false }): Promise<Answer>
{
  return new Promise((resolve, reject) => {
    const req = http.request({ host: '127.0.0.1', port, method, path, agent, setHost: false,
      headers: { Host: `127.0.0.1:${port}`, ...headers } })
    req.on('error', reject)
    req.on('upgrade', (res, socket) => {
      socket.destroy()
      resolve({ status: 101, headers: res.headers, text: '', json: () => assert.fail('an upgrade has no body'),
        isUpgraded: true })
    })
    req.on('response', (res) => {
      let text = ''
      res.setEncoding('utf8').on('error', reject).on('data', (chunk) => {
        text += chunk
      })
      res.on('end',
        () =>
          resolve({ status: res.statusCode ?? 0, headers: res.headers, text, json: () => JSON.parse(text),
            isUpgraded: false }))
    })
    req.end(body)
  })
}

type Update = { fragments: SentFragment[] }

/** What comes next over a live socket. */
export function heard (socket: Socket, name: string) {
  return once(socket as unknown as EventEmitter, name) as Promise<(Update & { message?: string })[]>
}

/** What the port answers to these bytes until it closes the connection. */
export async function rawBytes ({ port }: Pick<Admin, 'port'>, bytes: string) {
  const socket = net.connect(port, '127.0.0.1')
  let answer = ''
  socket.setEncoding('utf8').on('data', (chunk) => {
    answer += chunk
  }).on('error', () => {})
  socket.write(bytes)
  await new Promise((resolve) => socket.once('close', resolve))
  return answer
}

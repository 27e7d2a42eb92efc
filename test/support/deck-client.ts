import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { inspect } from 'node:util'
import { fallbackFolders } from '../../server/system/fallback-folder.ts'
import { get } from './asking.ts'
import { createEventLog, isLike, type EventLike } from './event-log.ts'
import './no-hang.ts'
import { inPatience } from './until.ts'
import type { AnswerOrProblem } from './answers.ts'
import type { Status, Worker } from '../../server/api/cluster.ts'
import type { RolloutInFull } from '../../server/rollouts/api.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

const LOOK_AGAIN_MS = 40

type Output = { stdout: string, stderr: string }
export type DeckClient = ReturnType<typeof createDeckClient>
/** A kind of rollout, or all that the API takes. */
type Order = 'restart' | 'deploy' | 'rollback' | { kind: string, [more: string]: unknown }
/** One that runs. */
type LiveWorker = Worker & { id: number, pid: number }

/**
 * The language of the tests with a real master, however that was started. Everything is waited for by event: the deck's
 * own event stream. `before`: those that the folder told of before this one was started.
 */
export function createDeckClient ({ folder, output, exited, before = [], isFollowed = true }: {
  folder: string,
  output: Output,
  exited: Promise<unknown>,
  before?: { pid: number }[],
  /** false: nothing is asked of it before `follow` */
  isFollowed?: boolean
}) {
  /** Pids: one that was killed is still announced. */
  const met = new Set(before.map(({ pid }) => pid))
  const events = createEventLog()
  /** Known once the master has announced itself. */
  const access = { pid: 0, adminUrl: '', token: '', place: folder }
  const inTime = <T>(promise: Promise<T>, what: string | (() => string)) =>
    inPatience(promise, () => `${typeof what === 'function' ? what() : what}; output: ${output.stdout}${output.stderr}`)

  const client = {
    folder,
    output,
    /** Of the newest master that has been waited for. */
    get masterPid () {
      return access.pid
    },
    get adminUrl () {
      return access.adminUrl
    },
    get token () {
      return access.token
    },
    /** The folder where its master is told of: another one where nothing can be written to its own. */
    get place () {
      return access.place
    },

    /** Waits for a master that is not known yet. */
    async meetNext () {
      const { pid, adminUrl, place } = await inTime(untilMaster(folder, (each) => !met.has(each), exited),
        'the master to announce itself')
      met.add(pid)
      const token = await readFile(path.join(folder, 'admin.token'), 'utf8').catch(() =>
        readFile(path.join(place, 'admin.token'), 'utf8')
      )
      Object.assign(access, { pid, adminUrl, place, token: token.trim() })
      if (isFollowed) client.follow()
    },

    follow () {
      events.follow(`${access.adminUrl}/api/v1/events/stream`, access.token)
    },

    /** `where`: path below /api/v1; `T`: what is answered, where that is not what `where` says */
    async api<T = never, P extends string = string, M extends string = string> (where: P,
      init: RequestInit & { method?: M } = {})
    {
      // A kept connection may be one that a master which was killed has left.
      const headers = { authorization: `Bearer ${access.token}`, connection: 'close',
        ...(init.body ? { 'content-type': 'application/json' } : {}), ...init.headers }
      const response = await fetch(`${access.adminUrl}/api/v1${where}`, { ...init, headers })
      const text = await response.text()
      return { status: response.status, headers: response.headers,
        body: parsed(text, `${where} of the master with pid ${access.pid}: HTTP ${response.status}`) as AnswerOrProblem<
          M,
          P,
          T
        > }
    },

    post: async <P extends string>(where: P, body?: object) =>
      await client.api(where, { method: 'POST', ...(body && { body: JSON.stringify(body) }) }),

    put: async <P extends string>(where: P, body: object) =>
      await client.api(where, { method: 'PUT', body: JSON.stringify(body) }),

    async status (): Promise<Status> {
      return (await client.api('/status')).body
    },

    /** @returns newest first */
    async history (query: string = ''): Promise<DeckEvent[]> {
      return (await client.api(`/events?${query}`)).body.items
    },

    /**
     * As history(), where what the test has waited for may come before the last of them. `count`: of events, at least.
     */
    async untilHistory (query: string, count: number) {
      return await inTime((async () => {
        for (;;) {
          const seen = events.count()
          const items = await client.history(query)
          if (items.length >= count) return items
          await events.untilMoreThan(seen)
        }
      })(), `${count} events of ${query}`)
    },

    /** The first address of the app. */
    async appUrl () {
      const { app: { addresses } } = await client.status()
      return String(addresses[0])
    },

    /** @returns what the app answers over a connection of its own */
    ask: async (route: string = '/'): Promise<string> => await get(new URL(route, await client.appUrl()).href),

    /** As `clusterdeck open` prints it. */
    async signInLink (): Promise<string> {
      return (await client.api('/sign-in-links', { method: 'POST' })).body.url
    },

    /**
     * Waits for an event that has come or is to come: the first of a type, or of one of some, whose fields are as they
     * are wanted; or the first that `matches`, which `what` names.
     */
    async untilEvent (wanted: string | readonly string[] | ((event: DeckEvent) => boolean),
      more: EventLike | string = {}): Promise<DeckEvent>
    {
      if (typeof wanted === 'function') return await inTime(events.until(wanted), String(more))
      const types = [wanted].flat()
      return await inTime(events.until((event) => types.includes(event.type) && isLike(event, more)),
        `${types.join(' or ')} ${inspect(more)}`)
    },

    /** Asks again after each event, until the status is as wanted. */
    async untilStatus (isWanted: (status: Status) => boolean, what: string) {
      /** What it waits for at the moment. */
      let step = ''
      return await inTime((async () => {
        for (;;) {
          const seen = events.count()
          step = `the answer to /status after ${seen} events`
          const status = await client.status()
          if (isWanted(status)) return status
          step = `more than ${seen} events; the status: ${status.state}, ${status.readyWorkers} ready, ${
            JSON.stringify(status.workers?.map(stateOf))
          }`
          await events.untilMoreThan(seen)
        }
      })(), () => `${what}, at last for ${step}`)
    },

    /** `wanted`: that many ready workers, and no others */
    until: async ({ ready }: { ready: number }) =>
      await client.untilStatus(({ readyWorkers, workers: rows }) => readyWorkers === ready && rows.length === ready,
        `${ready} ready workers`) as Omit<Status, 'workers'> & { workers: LiveWorker[] },

    /** Starts a rollout and waits for its end. Returns the rollout. */
    async rollout (order: Order): Promise<RolloutInFull> {
      return await client.rolloutEnd(await client.begin(order))
    },

    /** Starts a rollout. Returns it as it is then. */
    async begin (order: Order) {
      const { status, body } = await client.post('/rollouts', typeof order === 'string' ? { kind: order } : order)
      if (status !== 202) throw new Error(`expected 202, received ${status}: ${JSON.stringify(body)}`)
      return body
    },

    /** @returns the rollout once it has ended; on a busy machine that takes minutes */
    async rolloutEnd ({ id }: { id: number }): Promise<RolloutInFull> {
      return (await client.api(`/rollouts/${id}?wait=3m`)).body
    },

    /** Listens no more. */
    close: () => events.close()
  }
  return client
}

/** @returns those that have announced themselves, and may be dead */
export async function readMasters (folder: string): Promise<{ pid: number, adminUrl: string, place: string }[]> {
  const masters = []
  for (const place of [folder, ...fallbackFolders(folder)]) {
    // ENOENT: not yet, or not here.
    const text = await readFile(path.join(place, 'master.json'), 'utf8').catch(() => null)
    if (text !== null) masters.push({ ...JSON.parse(text), place })
  }
  return masters
}

/**
 * `master.json` appears once the admin port listens; the folder is watched by looking, as file watchers lose renames.
 */
async function untilMaster (folder: string, isMeant: (pid: number) => boolean, exited: Promise<unknown>) {
  const ended = exited.then(() => {
    throw new Error('the master ended before it announced itself')
  })
  ended.catch(() => {})
  for (;;) {
    const master = (await readMasters(folder)).find(({ pid }) => isMeant(pid))
    if (master) return master
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))])
  }
}

function stateOf ({ id, state }: Worker) {
  return `${id} ${state}`
}

/** `what`: it is the answer to @throws {Error} which shows the text */
function parsed (text: string, what: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`${what}: expected JSON, received ${JSON.stringify(text)}`, { cause: error })
  }
}

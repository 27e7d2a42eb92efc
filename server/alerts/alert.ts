import { randomUUID } from 'node:crypto'
import { DEFAULT_MAIL_PORT } from '../config/alert-kinds.ts'
import { DeckError } from '../errors.ts'
import { ALERTS } from '../events/kinds.ts'
import { matchesPattern } from '../events/pattern.ts'
import { createSender, type Message, type Outcome, type Post } from './sender.ts'
import { contentOf, createPost, type Deck } from './services.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { Alert as Target } from '../config/alert.ts'

/** `at`: when it was tried first; `attempt`: how many tries were begun */
export type Delivery = { id: number, at: string, event: Message['event'], attempt: number } & Outcome

const MAX_QUEUED_BY_OPERATORS = 10

const MAX_KEPT = 20

const UNTRIED: Readonly<Outcome & { attempt: number }> = Object.freeze({ attempt: 0, state: 'pending', status: null,
  durationMs: null, error: null, nextAttemptAt: null })

const HIDDEN = '…'
/** Secrets are longer, or have more than small letters. */
const PLAIN_PART = /^(?:[a-z]{1,10}|v\d)?$/

const NAMED_VALUE = /^[\w.-]{1,30}(?==)/

/**
 * One alert with its deliveries. Tests and retries of an operator have a queue of their own and one try: they neither
 * wait behind events that fail nor take their place.
 */
export function createAlert (firstTarget: Target, { id, isPaused, deck, onDelivered, onFailed }: {
  id: string,
  isPaused: boolean,
  deck: () => Deck,
  onDelivered: () => void,
  /** a message was given up */
  onFailed: (reason: string) => void
}, options: Partial<Parameters<typeof createSender>[1]> & Parameters<typeof createPost>[1]) {
  let target = firstTarget
  let post = createPost(target, options)
  const deliveries = createDeliveries({ time: options.time ?? Date.now })
  const eventSender = createSender(postNow, { ...options, onTry: deliveries.begin, onOutcome })
  const operatorSender = createSender(postNow, { ...options, onTry: deliveries.begin, onOutcome, maxTries: 1,
    maxQueued: MAX_QUEUED_BY_OPERATORS })
  let isClosing = false

  return {
    id,

    get target () {
      return target
    },

    get isPaused () {
      return isPaused
    },

    view: () => ({ id, ...shownTarget(target), isPaused, waiting: eventSender.waiting + operatorSender.waiting,
      deliveries: deliveries.list() }),

    /** Messages that wait go to the new receiver. */
    change (changed: Target, pausedNow: boolean) {
      target = changed
      post = createPost(target, options)
      isPaused = pausedNow
    },

    /** `from`: who tells it. Returns whether the receiver is told. */
    offer (event: DeckEvent, from: () => Deck): boolean {
      // Most events are for nobody, and to say who tells them costs more.
      if (isPaused || !isWanted(event, target.events ?? ALERTS)) return false
      const sender = from()
      if (target.apps && !sender.isHost && !target.apps.includes(sender.app)) return false
      eventSender.push(messageOf(event, sender))
      return true
    },

    /**
     * Sends the event even if this alert is paused or does not want its type.
     * @throws {DeckError} stopping
     */
    test (publish: () => DeckEvent): Delivery {
      checkOpen()
      return openDelivery(messageOf(publish()))
    },

    /** @throws {DeckError} stopping, not-found, delivery-not-failed */
    retry (n: number, publish: () => void): Delivery {
      checkOpen()
      const known = deliveries.find(n)
      if (!known) throw new DeckError('not-found', `Alert ${id} has no delivery ${n}, or it is no longer kept`)
      const { message, delivery: { state } } = known
      if (state !== 'failed')
        throw new DeckError('delivery-not-failed',
          `delivery ${n} of alert ${id}: expected state failed, received ${state}`)
      publish()
      return openDelivery(message)
    },

    async close (ms: number) {
      isClosing = true
      await Promise.all([eventSender.close(ms), operatorSender.close(ms)])
    }
  }

  function postNow (...[message, how]: Parameters<Post>): ReturnType<Post> {
    return post(message, how)
  }

  function messageOf (event: DeckEvent, from: Deck = deck()): Message {
    return { id: `msg_${randomUUID()}`, content: contentOf(target, event, from),
      event: { id: event.id, type: event.type, ...('keptBy' in from && { app: from.keptBy }) } }
  }

  function checkOpen () {
    if (isClosing) throw new DeckError('stopping', 'the master is stopping: it sends no more alerts')
  }

  function openDelivery (message: Message) {
    const delivery = deliveries.open(message)
    operatorSender.push(message)
    return delivery
  }

  function onOutcome (message: Message, outcome: Outcome) {
    const { state, error, attempt } = deliveries.end(message, outcome)
    if (state === 'delivered') onDelivered()
    if (state === 'failed')
      onFailed(
        `${message.event.type}: ${error}${
          attempt === 0 ? '' : `, given up after ${attempt} ${attempt === 1 ? 'try' : 'tries'}`
        }`
      )
  }
}

function shownTarget (
  { kind, name, dsn, url = dsn, secret, body, headers = {}, to, from, host, port = DEFAULT_MAIL_PORT, events, apps }:
    Target
) {
  return {
    kind,
    name: name ?? null,
    // In the address of a chat, all that follows the host is the key to its channel; in a DSN the key comes before it.
    url: url === undefined ? null : kind === 'webhook' ? shownUrl(url) : `${new URL(url).origin}/…`,
    isSigned: secret !== undefined,
    hasBody: body !== undefined,
    headers: Object.keys(headers),
    mail: kind === 'mail' ? { host: String(host), port, from: String(from), to: to ?? [] } : null,
    events: [...events ?? ALERTS],
    isDefault: events === undefined,
    apps: apps ?? null
  }
}

/** `patterns`: `worker.exited`, `worker.*`, `worker.exited:hung`, `*` */
function isWanted ({ type, cause }: DeckEvent, patterns: readonly string[]) {
  return patterns.some((pattern) =>
    matchesPattern(pattern, type) || (cause !== null && matchesPattern(pattern, `${type}:${cause}`))
  )
}

/**
 * Keeps the outcomes of the last messages of one alert, and all that are still pending. `time`: wall, ms.
 */
function createDeliveries ({ time }: { time: () => number }) {
  /** oldest first */
  const kept: { message: Message, delivery: Delivery }[] = []
  let lastId = 0

  return {
    /** @returns newest first */
    list: (): Delivery[] => kept.map(({ delivery }) => delivery).reverse(),

    find: (id: number) => kept.find(({ delivery }) => delivery.id === id) ?? null,

    /** Lists a message that waits for its first try. */
    open: (message: Message): Delivery => changeDelivery(message, { state: 'pending' }),

    begin (message: Message) {
      const { attempt } = entryOf(message).delivery
      changeDelivery(message, { state: 'pending', attempt: attempt + 1, nextAttemptAt: null })
    },

    end: (message: Message, outcome: Outcome): Delivery => changeDelivery(message, outcome)
  }

  function changeDelivery (message: Message, changes: Partial<Delivery>) {
    const entry = entryOf(message)
    entry.delivery = { ...entry.delivery, ...changes }
    return entry.delivery
  }

  function entryOf (message: Message) {
    const known = kept.find((entry) => entry.message === message)
    if (known) return known
    const entry = { message,
      delivery: { id: ++lastId, at: new Date(time()).toISOString(), event: message.event, ...UNTRIED } }
    kept.push(entry)
    forgetOldest()
    return entry
  }

  function forgetOldest () {
    const oldest = kept.findIndex(({ delivery }) => delivery.state !== 'pending')
    if (kept.length > MAX_KEPT && oldest !== -1) kept.splice(oldest, 1)
  }
}

/**
 * Hides what may be secret in an address: user, password, the values of the query, and each part of the path that is no
 * plain word, as many services put a secret there.
 */
export function shownUrl (url: string) {
  const { protocol, username, password, host, pathname, search, hash } = new URL(url)
  const user = username || password ? `${HIDDEN}@` : ''
  const path = pathname.split('/').map((part) => PLAIN_PART.test(part) ? part : HIDDEN).join('/')
  return `${protocol}//${user}${host}${path}${
    search && `?${search.slice(1).split('&').map(shownParameter).join('&')}`
  }${hash && `#${HIDDEN}`}`
}

/** A name without a value may be a secret too. */
function shownParameter (parameter: string) {
  const [name] = NAMED_VALUE.exec(parameter) ?? []
  return name === undefined ? HIDDEN : `${name}=${HIDDEN}`
}

import { createHmac, randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DeckError, errorReason } from '../errors.ts'
import { alertFlaw, MAX_ADDED_ALERTS } from '../config/alert-kinds.ts'
import { createAlert } from './alert.ts'
import { contentOf, templateValues, type Deck } from './services.ts'
import { wordingOf } from './wording.ts'
import type { Alert as Target, AlertChanges as Changes } from '../config/alert.ts'
import type { AlertRows } from '../../db/alerts.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'

export type Alerts = ReturnType<typeof createAlerts>
type Alert = ReturnType<typeof createAlert>

const DRAIN_MS = 2000

/**
 * Sends events to receivers, from queues, so that no publisher waits. Some alerts are set in the configuration file,
 * and people have added the others since.
 */
export function createAlerts ({ configured, store, events, isOwn = () => true, deck, log, appNames = null }: {
  configured: readonly Target[],
  /** of those that were added */
  store: AlertRows,
  events: Pick<EventStream, 'publish' | 'subscribe'>,
  /** not: somebody else hands it over, by `hear`, or tells it in its place */
  isOwn?: (event: DeckEvent) => boolean,
  deck: () => Deck,
  log: { warn: (fields: object, text: string) => void },
  /** of a host; null: of an app, whose alerts are for itself alone */
  appNames?: (() => string[]) | null
}, options: Parameters<typeof createAlert>[2] = {}) {
  const { time = Date.now } = options
  const isOfHost = appNames !== null
  /** Keys the digests, so that nobody finds the secrets of an alert by comparing guesses. */
  const key = randomBytes(32)
  let lastOfFile = 0
  let ofFile = configured.map(toAlertOfFile)
  /** by id */
  const added: Map<number, { alert: Alert, createdAt: number, createdBy: string }> = new Map(
    orNone(() => store.list()).flatMap(({ id, settings, pausedAt, createdAt, createdBy }) =>
      orNone(() => [[id, { alert: toAlert(settings as Target, String(id), pausedAt !== null), createdAt, createdBy }]])
    )
  )
  /** Resolved once an alert that is gone has sent its queue. */
  const leaving: Set<Promise<void>> = new Set()
  const unsubscribe = events.subscribe((event) => {
    if (isOwn(event)) hear(event)
  })

  return {
    hear,

    /** Those that people have added, oldest first, and those of the configuration, in its order. */
    list:
      () => [
        ...Array.from(added.values(),
          ({ alert, createdAt, createdBy }) => ({ ...alert.view(), isInFile: false,
            createdAt: new Date(createdAt).toISOString(), createdBy })),
        ...ofFile.map((alert) => ({ ...alert.view(), isInFile: true, createdAt: null, createdBy: null }))
      ],

    /**
     * Differs after each change of its settings.
     * @throws {DeckError} not-found
     */
    digest (id: string) {
      const { target, isPaused } = findAlert(id)
      return createHmac('sha256', key).update(JSON.stringify([target, isPaused])).digest('base64url')
    },

    /** An alert of the configuration that stays keeps its number, its deliveries and its queue. */
    configure (wanted: readonly Target[]) {
      const before = [...ofFile]
      ofFile = wanted.map((target) => takeFrom(before, target) ?? toAlertOfFile(target))
      for (const alert of before) closeAlert(alert)
    },

    /** Returns its id @throws {DeckError} invalid-body, not-possible, history-unavailable */
    add ({ wanted, actor }: { wanted: Target, actor: string }): string {
      checkApps(wanted)
      checkWhole(wanted, { isOfHost })
      if (added.size >= MAX_ADDED_ALERTS)
        throw new DeckError('not-possible', `There are already ${MAX_ADDED_ALERTS} alerts: delete one first`)
      const settings = withoutUndefined(wanted)
      const createdAt = time()
      const id = store.add({ settings, createdAt, createdBy: actor })
      const alert = toAlert(settings, String(id), false)
      added.set(id, { alert, createdAt, createdBy: actor })
      publishEvent('alert.added', { alert, actor }, `${labelOf(alert)} added`)
      return alert.id
    },

    /**
     * What is not mentioned stays, secrets too.
     * @throws {DeckError} not-found, not-possible, invalid-body, history-unavailable
     */
    change ({ id, changes: { isPaused, ...wanted }, actor }: { id: string, changes: Changes, actor: string }) {
      const alert = findAdded(id)
      const settings = changedTarget(alert.target, wanted)
      checkApps(wanted)
      checkWhole(settings, { isOfHost })
      const pausedNow = isPaused ?? alert.isPaused
      const isChanged = !isDeepStrictEqual(settings, alert.target)
      if (!isChanged && pausedNow === alert.isPaused) return
      const word = isChanged ? 'changed' : pausedNow ? 'paused' : 'resumed'
      store.change({ id: Number(id), settings, pausedAt: pausedNow ? time() : null })
      alert.change(settings, pausedNow)
      publishEvent('alert.changed', { alert, actor, isPaused: pausedNow }, `${labelOf(alert)} ${word}`)
    },

    /**
     * Messages that still wait are tried once more.
     * @throws {DeckError} not-found, not-possible, history-unavailable
     */
    delete ({ id, actor }: { id: string, actor: string }) {
      const alert = findAdded(id)
      store.remove(Number(id))
      added.delete(Number(id))
      closeAlert(alert)
      publishEvent('alert.deleted', { alert, actor }, `${labelOf(alert)} deleted`)
    },

    /**
     * Sends a test event.
     * @throws {DeckError} not-found, stopping
     */
    test ({ id, actor }: { id: string, actor: string }) {
      const alert = findAlert(id)
      return alert.test(() => publishEvent('alert.tested', { alert, actor }, `test of ${labelOf(alert)}`))
    },

    /**
     * Sends a message again after all its tries have failed.
     * @throws {DeckError} not-found, delivery-not-failed, stopping
     */
    retry ({ id, delivery, actor }: { id: string, delivery: number, actor: string }) {
      const alert = findAlert(id)
      return alert.retry(delivery,
        () =>
          publishEvent('alert.retried', { alert, actor, delivery },
            `delivery ${delivery} of ${labelOf(alert)} is sent again`))
    },

    /** What would be sent to such a receiver for this event. */
    preview: (kind: Target['kind'], event: DeckEvent) => ({ wording: wordingOf(event, deck()),
      content: contentOf({ kind }, event, deck()), values: templateValues(event, deck()) }),

    /** Takes no more events, and tries once more what is in the queues. */
    async close () {
      unsubscribe()
      await Promise.all([...leaving, ...all().map(({ close }) => close(DRAIN_MS))])
    }
  }

  /**
   * Sends an event to whoever wants it. `from`: who tells it; `told`: the receivers that have it already, each of which
   * gets it once; those that get it here are added.
   */
  function hear (event: DeckEvent, from: () => Deck = deck, told?: Set<string>) {
    // To report a failure to the receiver that fails would go on for ever. What an operator sends goes to one receiver
    // alone.
    if (event.type.startsWith('alert.')) return
    // Another host of the fleet sends this one.
    if (event.detail?.isReporter === false) return
    for (const alert of all()) {
      const { kind, url, dsn, to } = alert.target
      const receiver = JSON.stringify([kind, url, dsn, to])
      if (!told?.has(receiver) && alert.offer(event, from)) told?.add(receiver)
    }
  }

  function all () {
    return [...Array.from(added.values(), ({ alert }) => alert), ...ofFile]
  }

  /** The app runs, and other alerts are sent, whatever the database says. */
  function orNone<T> (read: () => T[]): T[] {
    try {
      return read()
    } catch (error) {
      // The error itself may hold an address, and with it a secret.
      log.warn({ reason: errorReason(error) }, 'alerts could not be read from the database')
      return []
    }
  }

  function toAlertOfFile (target: Target) {
    return toAlert(target, `file-${++lastOfFile}`, false)
  }

  function toAlert (target: Target, id: string, isPaused: boolean) {
    let isFailing = false
    const alert = createAlert(target, {
      id,
      isPaused,
      deck,
      // The event is published once, until the receiver takes messages again.
      onDelivered () {
        isFailing = false
      },
      onFailed (reason) {
        log.warn({ to: labelOf(alert), reason }, 'an alert was not delivered')
        if (isFailing) return
        isFailing = true
        events.publish({ type: 'alert.failed', actor: 'system',
          message: `${labelOf(alert)} was not delivered: ${reason}` })
      }
    }, options)
    return alert
  }

  async function closeAlert ({ close }: Alert) {
    const closed = close(DRAIN_MS)
    leaving.add(closed)
    await closed
    leaving.delete(closed)
  }

  /** @throws {DeckError} not-found */
  function findAlert (id: string) {
    const alert = all().find((each) => each.id === id)
    if (alert) return alert
    const known = all().length === 0 ? 'there is none' : `expected ${all().map((each) => each.id).join(' or ')}`
    throw new DeckError('not-found', `Alert ${id} does not exist: ${known}`)
  }

  /** @throws {DeckError} not-found, not-possible */
  function findAdded (id: string) {
    const alert = findAlert(id)
    if (ofFile.includes(alert))
      throw new DeckError('not-possible', `Alert ${id} is set in the configuration file: change it there`)
    return alert
  }

  /** One whose app is removed later stays as it is. @throws {DeckError} invalid-body */
  function checkApps ({ apps }: Changes) {
    const known = appNames?.() ?? []
    const unknown = isOfHost ? apps?.find((app) => !known.includes(app)) : undefined
    if (unknown !== undefined)
      throw new DeckError('invalid-body',
        `apps: expected apps of this host (${known.join(', ')}), received ${JSON.stringify(unknown)}`)
  }

  function publishEvent (type: 'alert.added' | 'alert.changed' | 'alert.deleted' | 'alert.tested' | 'alert.retried',
    { alert, actor, ...detail }: { alert: Alert, actor: string, delivery?: number, isPaused?: boolean },
    message: string)
  {
    return events.publish({ type, actor, message, detail: { alert: alert.id, kind: alert.target.kind, ...detail } })
  }
}

/** @throws {DeckError} invalid-body */
function changedTarget (target: Target, wanted: Omit<Changes, 'isPaused'>): Target {
  const merged = Object.entries({ ...target, ...withoutUndefined(wanted) })
  const changed = Object.fromEntries(merged.filter(([, value]) => value !== null)) as Target
  // Whoever may change the receiver could otherwise have what is secret sent to one of their own.
  const move = MOVES.find(({ by }) => by.some((field) => changed[field] !== target[field]))
  const kept = move?.secrets.find((field) => target[field] !== undefined && wanted[field] === undefined)
  if (kept) throw new DeckError('invalid-body', `${kept}: expected again, as the ${move?.what} changes, received none`)
  return changed
}

/** Where an alert can be sent elsewhere, and what would go along. */
const MOVES: readonly { what: string, by: Field[], secrets: Field[] }[] = Object.freeze([{ what: 'server',
  by: ['host', 'port'], secrets: ['password'] }, { what: 'address', by: ['url'], secrets: ['headers', 'body'] }])
type Field = Exclude<keyof Changes, 'isPaused'>

/** @throws {DeckError} invalid-body */
function checkWhole (target: Target, how: { isOfHost: boolean }) {
  const flaw = alertFlaw(target, how)
  if (!flaw) return
  const received = Reflect.get(target, flaw.field) === undefined ? 'none' : 'one'
  throw new DeckError('invalid-body', `${flaw.field}: expected ${flaw.expected}, received ${received}`)
}

function withoutUndefined<T extends object> (fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}

function takeFrom (alerts: Alert[], target: Target) {
  const index = alerts.findIndex((alert) => isDeepStrictEqual(alert.target, target))
  return index === -1 ? null : alerts.splice(index, 1)[0]
}

/** Of an address the origin alone: many services put a secret into the rest. */
function labelOf ({ id, target: { kind, name, dsn, url = dsn, host } }: Alert) {
  const to = url === undefined ? `mail by ${host}` : `${kind}, ${new URL(url).origin}`
  return `alert ${id}${name === undefined ? '' : ` ${JSON.stringify(name)}`} (${to})`
}

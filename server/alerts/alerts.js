import { createHmac, randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { DeckError, errorReason } from '../errors.js'
import { alertFlaw, MAX_ADDED_ALERTS } from '../config/alert-kinds.js'
import { createAlert } from './alert.js'
import { contentOf } from './services.js'
import { wordingOf } from './wording.js'

/** @typedef {ReturnType<typeof createAlerts>} Alerts */
/** @typedef {ReturnType<typeof createAlert>} Alert */
/** @typedef {import('./services.js').Target} Target */
/** @typedef {import('../config/alert.js').AlertChanges} Changes */

const DRAIN_MS = 2000

/**
 * Sends events to receivers, from queues, so that no publisher waits. Some alerts are set in the configuration file, and people
 * have added the others since.
 * @param {object} parts
 * @param {readonly Target[]} parts.configured
 * @param {import('../../db/alerts.js').AlertRows} parts.store  of those that were added
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {() => import('./services.js').Deck} parts.deck
 * @param {{ warn: (fields: object, text: string) => void }} parts.log
 * @param {Parameters<typeof createAlert>[2]} [options]
 */
export function createAlerts ({ configured, store, events, deck, log }, options = {}) {
  const { time = Date.now } = options
  /** Keys the digests, so that nobody finds the secrets of an alert by comparing guesses. */
  const key = randomBytes(32)
  let lastOfFile = 0
  let ofFile = configured.map(toAlertOfFile)
  /** @type {Map<number, { alert: Alert, createdAt: number, createdBy: string }>} by id */
  const added = new Map(orNone(() => store.list()).flatMap(({ id, settings, pausedAt, createdAt, createdBy }) => orNone(() => [
    [id, { alert: toAlert(/** @type {Target} */ (settings), String(id), pausedAt !== null), createdAt, createdBy }]
  ])))
  /** Resolved once an alert that is gone has sent its queue. @type {Set<Promise<void>>} */
  const leaving = new Set()
  const unsubscribe = events.subscribe((event) => {
    // To report a failure to the receiver that fails would go on for ever. What an operator sends goes to one receiver alone.
    if (event.type.startsWith('alert.')) return
    // Another host of the fleet sends this one.
    if (event.detail?.isReporter === false) return
    for (const alert of all()) alert.offer(event)
  })

  return {
    /** Those that people have added, oldest first, and those of the configuration, in its order. */
    list: () => [
      ...Array.from(added.values(), ({ alert, createdAt, createdBy }) => ({ ...alert.view(), isInFile: false, createdAt: new Date(createdAt).toISOString(), createdBy })),
      ...ofFile.map((alert) => ({ ...alert.view(), isInFile: true, createdAt: null, createdBy: null }))
    ],

    /** Differs after each change of its settings. @param {string} id @throws {DeckError} not-found */
    digest (id) {
      const { target, isPaused } = findAlert(id)
      return createHmac('sha256', key).update(JSON.stringify([target, isPaused])).digest('base64url')
    },

    /** An alert of the configuration that stays keeps its number, its deliveries and its queue. @param {readonly Target[]} wanted */
    configure (wanted) {
      const before = [...ofFile]
      ofFile = wanted.map((target) => takeFrom(before, target) ?? toAlertOfFile(target))
      for (const alert of before) closeAlert(alert)
    },

    /**
     * @param {{ wanted: Target, actor: string }} order @returns {string} its id
     * @throws {DeckError} invalid-body, not-possible, history-unavailable
     */
    add ({ wanted, actor }) {
      checkWhole(wanted)
      if (added.size >= MAX_ADDED_ALERTS) throw new DeckError('not-possible', `There are already ${MAX_ADDED_ALERTS} alerts: delete one first`)
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
     * @param {{ id: string, changes: Changes, actor: string }} order
     * @throws {DeckError} not-found, not-possible, invalid-body, history-unavailable
     */
    change ({ id, changes: { isPaused, ...wanted }, actor }) {
      const alert = findAdded(id)
      const settings = changedTarget(alert.target, wanted)
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
     * @param {{ id: string, actor: string }} order
     * @throws {DeckError} not-found, not-possible, history-unavailable
     */
    delete ({ id, actor }) {
      const alert = findAdded(id)
      store.remove(Number(id))
      added.delete(Number(id))
      closeAlert(alert)
      publishEvent('alert.deleted', { alert, actor }, `${labelOf(alert)} deleted`)
    },

    /**
     * Sends a test event.
     * @param {{ id: string, actor: string }} order
     * @throws {DeckError} not-found, stopping
     */
    test ({ id, actor }) {
      const alert = findAlert(id)
      return alert.test(() => publishEvent('alert.tested', { alert, actor }, `test of ${labelOf(alert)}`))
    },

    /**
     * Sends a message again after all its tries have failed.
     * @param {{ id: string, delivery: number, actor: string }} order
     * @throws {DeckError} not-found, delivery-not-failed, stopping
     */
    retry ({ id, delivery, actor }) {
      const alert = findAlert(id)
      return alert.retry(delivery, () => publishEvent('alert.retried', { alert, actor, delivery }, `delivery ${delivery} of ${labelOf(alert)} is sent again`))
    },

    /** What would be sent to such a receiver for this event. @param {Target['kind']} kind @param {import('../events/stream.js').DeckEvent} event */
    preview: (kind, event) => ({ wording: wordingOf(event, deck()), content: contentOf(kind, event, deck()) }),

    /** Takes no more events, and tries once more what is in the queues. */
    async close () {
      unsubscribe()
      await Promise.all([...leaving, ...all().map(({ close }) => close(DRAIN_MS))])
    }
  }

  function all () {
    return [...Array.from(added.values(), ({ alert }) => alert), ...ofFile]
  }

  /** The app runs, and other alerts are sent, whatever the database says. @template T @param {() => T[]} read @returns {T[]} */
  function orNone (read) {
    try {
      return read()
    } catch (error) {
      // The error itself may hold an address, and with it a secret.
      log.warn({ reason: errorReason(error) }, 'alerts could not be read from the database')
      return []
    }
  }

  /** @param {Target} target */
  function toAlertOfFile (target) {
    return toAlert(target, `file-${++lastOfFile}`, false)
  }

  /** @param {Target} target @param {string} id @param {boolean} isPaused */
  function toAlert (target, id, isPaused) {
    let isFailing = false
    const alert = createAlert(target, {
      id,
      isPaused,
      deck,
      // The event is published once, until the receiver takes messages again.
      onDelivered () { isFailing = false },
      onFailed (reason) {
        log.warn({ to: labelOf(alert), reason }, 'an alert was not delivered')
        if (isFailing) return
        isFailing = true
        events.publish({ type: 'alert.failed', actor: 'system', message: `${labelOf(alert)} was not delivered: ${reason}` })
      }
    }, options)
    return alert
  }

  /** @param {Alert} alert */
  async function closeAlert ({ close }) {
    const closed = close(DRAIN_MS)
    leaving.add(closed)
    await closed
    leaving.delete(closed)
  }

  /** @param {string} id @throws {DeckError} not-found */
  function findAlert (id) {
    const alert = all().find((each) => each.id === id)
    if (alert) return alert
    const known = all().length === 0 ? 'there is none' : `expected ${all().map((each) => each.id).join(' or ')}`
    throw new DeckError('not-found', `Alert ${id} does not exist: ${known}`)
  }

  /** @param {string} id @throws {DeckError} not-found, not-possible */
  function findAdded (id) {
    const alert = findAlert(id)
    if (ofFile.includes(alert)) throw new DeckError('not-possible', `Alert ${id} is set in the configuration file: change it there`)
    return alert
  }

  /** @param {'alert.added' | 'alert.changed' | 'alert.deleted' | 'alert.tested' | 'alert.retried'} type @param {{ alert: Alert, actor: string, delivery?: number, isPaused?: boolean }} order @param {string} message */
  function publishEvent (type, { alert, actor, ...detail }, message) {
    return events.publish({ type, actor, message, detail: { alert: alert.id, kind: alert.target.kind, ...detail } })
  }
}

/** @param {Target} target @param {Omit<Changes, 'isPaused'>} wanted @returns {Target} @throws {DeckError} invalid-body */
function changedTarget (target, { events, ...wanted }) {
  const changed = { ...target, ...withoutUndefined(wanted), ...(events && { events }) }
  if (events === null) delete changed.events
  const isElsewhere = changed.host !== target.host || changed.port !== target.port
  // Whoever may change the server could otherwise have the password sent to one of their own.
  if (isElsewhere && target.password !== undefined && wanted.password === undefined) throw new DeckError('invalid-body', 'password: expected again, as the server changes, received none')
  checkWhole(changed)
  return changed
}

/** @param {Target} target @throws {DeckError} invalid-body */
function checkWhole (target) {
  const flaw = alertFlaw(target)
  if (!flaw) return
  const received = Reflect.get(target, flaw.field) === undefined ? 'none' : 'one'
  throw new DeckError('invalid-body', `${flaw.field}: expected ${flaw.expected}, received ${received}`)
}

/** @template {object} T @param {T} fields @returns {T} */
function withoutUndefined (fields) {
  return /** @type {T} */ (Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)))
}

/** Removes the one with this target, if there is one. @param {Alert[]} alerts @param {Target} target */
function takeFrom (alerts, target) {
  const index = alerts.findIndex((alert) => isDeepStrictEqual(alert.target, target))
  return index === -1 ? null : alerts.splice(index, 1)[0]
}

/** Of an address the origin alone: many services put a secret into the rest. @param {Alert} alert */
function labelOf ({ id, target: { kind, name, dsn, url = dsn, host } }) {
  const to = url === undefined ? `mail by ${host}` : `${kind}, ${new URL(url).origin}`
  return `alert ${id}${name === undefined ? '' : ` ${JSON.stringify(name)}`} (${to})`
}

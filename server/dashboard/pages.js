import { Router, urlencoded } from 'express'
import { z } from 'zod'
import { ID } from '../config/id.js'
import { RELEASE_ID } from '../config/release-id.js'
import { STEERING } from '../config/steering.js'
import { DeckError } from '../errors.js'
import { crashModel } from './crash-page.js'
import { countOpen, crashesModel } from './crashes-page.js'
import { CSV_TYPE, sendExport } from '../api/export.js'
import { deploysModel } from './deploys-page.js'
import { docsModel } from './docs-page.js'
import { eventModel, exportQuery, historyModel } from './history-page.js'
import { logsFile, logsModel } from './logs-page.js'
import { blockedReason, overviewModel } from './overview.js'
import { toDeckError } from '../api/problem.js'
import { releaseModel } from './release-page.js'

/**
 * The pages of the dashboard and the forms on them.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'dispatch' | 'deploy' | 'logs' | 'crashes' | 'releases'>} Deck
 */

const SILENT_LOG = { warn () {}, error () {} }
const MAX_WORKERS = 256
const MAX_NOTE_CHARS = 500

const LOG_FILES = /** @type {const} */ ([['/logs.txt', 'text', 'text/plain'], ['/logs.ndjson', 'ndjson', 'application/x-ndjson']])

const NUMBER = z.string().regex(ID).transform(Number)
const WORKER_COUNT = z.string().regex(/^\d{1,4}$/).transform(Number).pipe(z.number().min(1).max(MAX_WORKERS))

const actor = 'dashboard'

/** @type {Readonly<Record<string, (deck: Deck, body: Record<string, unknown>) => unknown>>} what a form may ask for */
const ACTIONS = {
  restart: (deck) => deck.dispatch({ type: 'rollout', kind: 'restart', actor }),
  deploy: (deck, { note }) => deck.deploy({ ...optionalNote(note), actor }),
  rollback: (deck, { release, note }) => deck.dispatch({
    type: 'rollout',
    kind: 'rollback',
    release: checked(z.string().regex(RELEASE_ID), release, 'release: expected a release such as r12'),
    ...optionalNote(note),
    actor
  }),
  ...Object.fromEntries(STEERING.map((type) => [`${type}-rollout`, steering(type)])),
  scale: (deck, { workers }) => deck.dispatch({
    type: 'scale', workers: checked(WORKER_COUNT, workers, `workers: expected an integer from 1 to ${MAX_WORKERS}`), actor
  }),
  'restart-worker': (deck, { worker }) => deck.dispatch({
    type: 'restart-worker', worker: checked(NUMBER, worker, 'worker: expected the id of a worker'), actor
  })
}

/**
 * @param {object} parts
 * @param {Deck} parts.deck
 * @param {import('../../db/history.js').History} parts.history
 * @param {import('./views.js').Views} parts.views
 * @param {() => number} [parts.now] wall clock, ms since the epoch
 * @param {import('../admin/app.js').Log} [parts.log]
 */
export function pagesRouter ({ deck, history, views, now = Date.now, log = SILENT_LOG }) {
  const router = Router()

  router.get('/', (req, res) => {
    res.type('html').send(page('overview', overviewModel({ deck, history, now: now(), openCrashes: countOpen(deck.crashes) })))
  })

  router.get('/deploys', (req, res) => {
    res.type('html').send(page('deploys', deploysModel({ deck, history, params: queryOf(req), now: now(), blocked: blockedReason(deck.snapshot()) })))
  })

  router.get('/releases/:id', (req, res) => {
    res.type('html').send(page('release', releaseModel({ deck, id: req.params.id, now: now(), blocked: blockedReason(deck.snapshot()) })))
  })

  router.get('/history', (req, res) => {
    const model = historyModel({ history, params: queryOf(req), now: now() })
    // The form sends its empty fields along; the address bar shows what counts.
    if (req.get('HX-Request')) res.set('HX-Push-Url', model.problem ? req.originalUrl : model.canonicalUrl)
    res.status(model.problem?.status ?? 200).type('html').send(page('history', model))
  })

  // A link cannot ask for a format as callers of the API do, by its Accept header.
  router.get('/history.csv', (req, res) => {
    return sendExport({ history, query: exportQuery({ params: queryOf(req), now: now() }), type: CSV_TYPE, req, res, log })
  })

  router.get('/history/:id', (req, res) => {
    res.type('html').send(page('event', eventModel({ history, id: req.params.id, now: now() })))
  })

  router.get('/crashes', (req, res) => {
    const model = crashesModel({ crashes: deck.crashes, params: queryOf(req), now: now() })
    if (req.get('HX-Request')) res.set('HX-Push-Url', model.problem ? req.originalUrl : model.canonicalUrl)
    res.status(model.problem?.status ?? 200).type('html').send(page('crashes', model))
  })

  router.get('/crashes/:id', (req, res) => {
    const model = crashModel({ crashes: deck.crashes, history, id: req.params.id, params: queryOf(req), now: now() })
    res.status(model.status).type('html').send(page('crash', model))
  })

  router.get('/logs', async (req, res) => {
    const model = await logsModel({ logs: deck.logs, params: queryOf(req) })
    if (req.get('HX-Request')) res.set('HX-Push-Url', model.urls?.page ?? req.originalUrl)
    res.status(model.problem?.status ?? 200).type('html').send(page('logs', { now: now(), ...model }))
  })

  router.get('/docs{/:name}', async (req, res) => {
    res.type('html').send(page('docs', await docsModel({ name: req.params.name, now: now() })))
  })

  for (const [path, type, mediaType] of LOG_FILES) {
    router.get(path, async (req, res) => {
      const text = await logsFile({ logs: deck.logs, params: queryOf(req), type })
      res.set({ 'Content-Type': `${mediaType}; charset=utf-8`, 'Content-Disposition': `attachment; filename="clusterdeck-${path.slice(1)}"` }).end(text)
    })
  }

  router.post('/actions/:name', onlyPeople, urlencoded({ extended: false, limit: '16kb' }), async (req, res, next) => {
    const name = String(req.params.name)
    if (!Object.hasOwn(ACTIONS, name)) return next()
    await ACTIONS[name](deck, req.body ?? {})
    // Nothing to swap: the live page shows what comes of it.
    res.status(204).end()
  })

  router.use(onVisits((req) => { throw new DeckError('not-found', `No such page: ${req.path.slice(0, 200)}`) }))
  router.use(showError)
  return router

  /** @param {string} name @param {object} model */
  function page (name, model) {
    return views.render(`pages/${name}`, { openCrashes: countOpen(deck.crashes), ...model })
  }

  /** People get errors as pages; everybody else as problem details, from the app. @type {import('express').ErrorRequestHandler} */
  function showError (error, req, res, next) {
    if (!isVisit(req) || res.headersSent) return next(error)
    const { status, title, message, code } = toDeckError(error)
    if (code === 'internal') log.error({ err: error }, 'a page of the dashboard failed')
    res.status(status).type('html').send(views.render('pages/error', { now: now(), status, title, message }))
  }
}

/** @param {import('../config/steering.js').Steering} type @returns {(deck: Deck, body: Record<string, unknown>) => unknown} */
function steering (type) {
  return (deck, { rollout }) => deck.dispatch({ type, rollout: checked(NUMBER, rollout, 'rollout: expected the id of a rollout'), actor })
}

/** @param {import('express').RequestHandler} handler for somebody who typed an address or followed a link */
function onVisits (handler) {
  return (/** @type {import('express').Request} */ req, /** @type {import('express').Response} */ res, /** @type {import('express').NextFunction} */ next) => isVisit(req) ? handler(req, res, next) : next()
}

function isVisit (/** @type {import('express').Request} */ { method, path, headers }) {
  return method === 'GET' && !path.startsWith('/api/') && String(headers.accept).includes('text/html')
}

/** Forms are for the browser's session; scripts have the API, which says what it does. */
function onlyPeople (/** @type {import('express').Request} */ req, /** @type {unknown} */ res, /** @type {() => void} */ next) {
  if (req.auth?.via !== 'session') throw new DeckError('forbidden', 'Dashboard actions require a session; scripts use /api/v1')
  next()
}

/** @param {import('express').Request} req the raw query: express may have been told to parse it in its own way */
function queryOf (req) {
  return new URL(req.originalUrl, 'http://localhost').searchParams
}

function optionalNote (/** @type {unknown} */ note) {
  const text = checked(z.string().trim().max(MAX_NOTE_CHARS).optional(), note, `note: expected at most ${MAX_NOTE_CHARS} characters`)
  return text ? { note: text } : {}
}

/**
 * @template T
 * @param {import('zod').ZodType<T>} schema @param {unknown} value @param {string} expectation
 * @returns {T}
 */
function checked (schema, value, expectation) {
  const { success, data } = schema.safeParse(value)
  if (!success) throw new DeckError('invalid-body', `${expectation}, received ${JSON.stringify(String(value).slice(0, 60))}`)
  return data
}

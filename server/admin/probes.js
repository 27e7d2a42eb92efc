import { z } from 'zod'
import { APP_NAME } from '../api/apps.js'
import { operation } from '../api/endpoint.js'
import { RETRY_AFTER_S } from '../problem.js'

const TEXT = 'text/plain'

/**
 * For load balancers and probes: public, and says nothing but yes or no.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'snapshot'> }} parts
 * @returns {Record<string, import('../api/endpoint.js').Resource>}
 */
export function probeResources ({ deck }) {
  return {
    '/healthz': {
      GET: operation({
        name: 'isAlive',
        summary: 'Tells whether the master is running',
        role: null,
        produces: [],
        answer: { [TEXT]: z.literal('ok\n') },
        handle: sayAlive
      })
    },

    '/readyz': {
      GET: operation({
        name: 'isReady',
        summary: 'Tells whether every wanted worker is ready or has finished',
        role: null,
        produces: [],
        answer: { [TEXT]: z.literal('ready\n') },
        others: { 503: { [TEXT]: z.literal('not ready\n') } },
        handle: ({ res }) => sayReady(res, isReady(deck))
      })
    }
  }
}

/**
 * The same of a host, and of each of its apps. Names of apps are told to nobody here: one that does not exist is as one that is not ready.
 * @param {{ apps: Pick<import('../api/apps.js').Apps, 'states' | 'opened'> }} parts
 * @returns {Record<string, import('../api/endpoint.js').Resource>}
 */
export function hostProbeResources ({ apps }) {
  const path = { app: APP_NAME }
  const isAppReady = (/** @type {string} */ name) => {
    const opened = apps.opened(name)
    return opened !== null && isReady(opened.deck)
  }
  return {
    '/healthz': {
      GET: operation({
        name: 'isAlive',
        summary: 'Tells whether the host is running',
        role: null,
        produces: [],
        answer: { [TEXT]: z.literal('ok\n') },
        handle: sayAlive
      })
    },

    '/readyz': {
      GET: operation({
        name: 'isReady',
        summary: 'Tells whether every app that should run is ready or has finished',
        role: null,
        produces: [],
        answer: { [TEXT]: z.literal('ready\n') },
        others: { 503: { [TEXT]: z.literal('not ready\n') } },
        handle: ({ res }) => sayReady(res, apps.states().every(({ name, state }) => STOPPED.has(state) || isAppReady(name)))
      })
    },

    '/apps/:app/healthz': {
      GET: operation({
        name: 'isAppAlive',
        summary: 'Tells whether the host is running, as an app that is alone does',
        role: null,
        path,
        produces: [],
        answer: { [TEXT]: z.literal('ok\n') },
        handle: sayAlive
      })
    },

    '/apps/:app/readyz': {
      GET: operation({
        name: 'isAppReady',
        summary: 'Tells whether every wanted worker of an app is ready or has finished',
        role: null,
        path,
        produces: [],
        answer: { [TEXT]: z.literal('ready\n') },
        others: { 503: { [TEXT]: z.literal('not ready\n') } },
        handle: ({ req, res }) => sayReady(res, isAppReady(String(req.params.app)))
      })
    }
  }
}

/** By somebody's order. */
const STOPPED = new Set(['stopping', 'stopped'])

/** @param {Pick<import('../deck.js').Deck, 'snapshot'>} deck */
function isReady (deck) {
  const { state, readyWorkers, finishedWorkers, desiredWorkers } = deck.snapshot()
  return state === 'running' && readyWorkers + finishedWorkers >= desiredWorkers
}

/** @param {Pick<import('../api/endpoint.js').Call, 'res'>} call @returns {undefined} */
function sayAlive ({ res }) {
  res.type(TEXT).send('ok\n')
}

/** @param {import('express').Response} res @param {boolean} isReady @returns {undefined} */
function sayReady (res, isReady) {
  if (!isReady) res.set('Retry-After', String(RETRY_AFTER_S))
  res.status(isReady ? 200 : 503).type(TEXT).send(isReady ? 'ready\n' : 'not ready\n')
}
